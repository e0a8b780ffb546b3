"""Plans: shapes near the sizes asked for, budgets that are spent."""

from __future__ import annotations

import pytest

from chainrule.errors import ConfigError, DataError
from chainrule.models import GPTConfig
from chainrule.scaling.plan import Plan, PlanConfig, check_text, shape


@pytest.mark.parametrize("params", [3e4, 1e5, 1e6, 2e7, 1e9])
def test_a_shape_has_about_as_many_parameters(params: float) -> None:
    config = PlanConfig(vocab_size=100)
    sizes = shape(params, config)
    assert GPTConfig(vocab_size=100, **sizes).n_params == pytest.approx(params, rel=0.5)
    assert sizes["n_embd"] == 32 * sizes["n_head"]
    assert 8 <= sizes["n_embd"] / sizes["n_layer"] <= 96


def test_each_model_spends_its_budget() -> None:
    plan = Plan.of(PlanConfig(budgets=(1e13, 1e15), factors=(0.5, 1, 2), vocab_size=100))
    assert len(plan.models) == 6
    for model in plan.models:
        assert model.flops == pytest.approx(model.budget, rel=0.05)
        assert model.params == GPTConfig(vocab_size=100, **model.sizes).n_params
        assert 1 <= model.exact_flops / model.flops < 1.3
        assert model.params_without_embedding < model.params
    small, large = plan.models[0], plan.models[-1]
    assert large.lr / small.lr == pytest.approx((large.params / small.params) ** -0.5)
    assert large.batch_size > small.batch_size


def test_near_budgets_have_names_of_their_own() -> None:
    plan = Plan.of(PlanConfig(budgets=(2e9, 2.4e9), factors=(1.0,)))
    assert len({model.name for model in plan.models}) == 2
    with pytest.raises(ConfigError, match=r"budgets is 2e\+09 \(each must occur once, within six digits"):
        PlanConfig(budgets=(2e9, 2.0000001e9))


def test_factors_that_lead_to_the_same_shape_are_one_model() -> None:
    plan = Plan.of(PlanConfig(budgets=(1e10,), factors=(0.01, 0.02, 1.0)))
    assert len({model.name for model in plan.models}) == len(plan.models) < 3
    assert "of 3 asked for" in plan.doubts()[0]
    assert "more than the budget" in Plan.of(PlanConfig(budgets=(1.0,))).doubts()[-1]
    assert Plan.of(PlanConfig(budgets=(1e15,))).doubts() == []


def test_a_budget_beyond_every_size_asks_for_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "chainrule.scaling.plan.MOST_HEADS", 20
    )  # the largest of 400 layers takes long to trace
    (said,) = Plan.of(PlanConfig(budgets=(1e40,))).doubts()
    assert said.startswith("1 model of 5 asked for: ") and said.endswith("(smaller budgets)")
    (said,) = Plan.of(PlanConfig(budgets=(1e40,), factors=(1.0,))).doubts()
    assert "parameters are wanted" in said


def test_a_text_that_is_read_again_is_told() -> None:
    plan = Plan.of(PlanConfig(budgets=(1e12,), factors=(1.0,)))
    assert check_text(plan, 10**9) == []
    assert "read the text more than once" in check_text(plan, 1000)[0]


def test_wrong_plans(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match="budgets has no value"):
        PlanConfig(budgets=())
    with pytest.raises(ConfigError, match=r"budgets is 0 \(each must be a positive number\)"):
        PlanConfig(budgets=(1e11, 0))
    with pytest.raises(ConfigError, match=r"factors is -1.0 \(each must be a positive number\)"):
        PlanConfig(factors=(1.0, -1.0))
    with pytest.raises(DataError, match="cannot be read"):
        Plan.read("no-such-plan.json")
