"""Budgets split between parameters and tokens."""

from __future__ import annotations

import pytest

from chainrule.errors import ConfigError
from chainrule.scaling.laws import chinchilla, data_limited, optimal, training_flops, with_inference
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED as LAW
from tests.vectors import vector


@pytest.mark.requirement("R-431")
def test_six_flops_per_parameter_and_token() -> None:
    v = vector("004-14.7.1-budget-check")
    v.check(training_flops(v.inputs["N"], v.inputs["D"]))


@pytest.mark.requirement("R-433")
def test_twenty_tokens_per_parameter() -> None:
    v = vector("der-chinchilla-20")
    found = [chinchilla(C) for C in v.inputs["C"]]
    v.check({"N": [each.params for each in found], "D": [each.tokens for each in found]})
    v = vector("004-14.3.1-sqrtC")
    v.check({"N": chinchilla(v.inputs["C"]).params, "D": chinchilla(v.inputs["C"]).tokens})
    v = vector("004-14.3.2-rule-7B")
    v.check([chinchilla(120 * N**2).tokens for N in v.inputs["N"]])
    assert chinchilla(4e20).params == pytest.approx(2 * chinchilla(1e20).params)  # C^0.5


@pytest.mark.requirement("R-433")
def test_known_models_by_the_rule() -> None:
    v = vector("der-tokens-per-parameter")
    models = v.inputs["models"]
    v.check({"ratio": [D / N for N, D in models], "flops": [training_flops(N, D) for N, D in models]})
    v = vector("004-14.3.2-fewer-params")
    v.check(v.inputs["a"] / v.inputs["b"])
    v = vector("004-14.7.1-Nopt")  # the printed prefactor, which spends a seventeenth of its budget
    N = v.inputs["prefactor"] * (v.inputs["C"] / 1e21) ** 0.5
    v.check({"N": N, "D": 20 * N})
    assert training_flops(N, 20 * N) < v.inputs["C"] / 17
    assert chinchilla(v.inputs["C"]).flops == pytest.approx(v.inputs["C"])


@pytest.mark.requirement("R-434")
def test_three_ways_to_use_too_little_text() -> None:
    C, tokens = 1e21, 1e10
    found = data_limited(C, tokens)
    assert list(found) == ["smaller", "epochs", "larger"]
    assert found["smaller"] == (tokens / 20, tokens)
    assert found["smaller"].flops < C
    assert found["epochs"].flops == pytest.approx(C)
    assert found["epochs"].tokens > tokens  # read more than once
    assert found["larger"].tokens == tokens
    assert found["larger"].flops == pytest.approx(C)
    with pytest.raises(ConfigError, match="are enough"):
        data_limited(C, 1e12)


@pytest.mark.requirement("R-435")
def test_much_use_asks_for_a_smaller_model() -> None:
    C = 1e22
    best = optimal(LAW, C)
    loss = LAW(*best).item()
    found = [with_inference(LAW, loss, served) for served in (0.0, 1e11, 1e13, 1e15)]
    assert found[0].params == pytest.approx(best.params, rel=1e-3)
    sizes = [each.params for each in found]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 2 * sizes[-1]
    for each in found:
        assert LAW(*each).item() == pytest.approx(loss, rel=1e-9)
    cost = [each.flops + 2 * each.params * 1e13 for each in found]
    assert min(cost) == cost[2]


def test_what_no_budget_reaches() -> None:
    with pytest.raises(ConfigError, match=r"loss 1\.5 is never reached"):
        with_inference(LAW, 1.5, 0.0)
    with pytest.raises(ConfigError, match=r"C is -1 \(must be a positive number\)"):
        chinchilla(-1)
