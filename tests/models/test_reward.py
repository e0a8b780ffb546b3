"""One number per text, read at its last token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.models import Reward
from chainrule.models.reward import Comparisons
from tests.models.tiny import tiny

IDS = np.random.default_rng(1).integers(11, size=(3, 6))
LENGTHS = np.array([6, 2, 1])
MASK = np.arange(6) < LENGTHS[:, None]


@pytest.fixture(params=["gpt", "llama"])
def model(request: Any) -> Reward:
    return Reward.on(tiny(request.param)).to(np.float64).eval()  # type: ignore[arg-type]


@pytest.mark.requirement("R-339")
def test_one_number_read_at_the_last_token(model: Reward) -> None:
    rewards = model(IDS, MASK).numpy()
    assert rewards.shape == (3,)
    for row, length, reward in zip(IDS, LENGTHS, rewards, strict=True):
        assert model(row[None, :length]).item() == pytest.approx(reward, rel=1e-9)  # alone, without padding
        hidden = model.body.hidden(row[None]).numpy()[0, length - 1]
        assert reward == pytest.approx(float(hidden @ model.score.weight.data[0]), rel=1e-9)


@pytest.mark.requirement("R-339")
def test_padding_has_no_say(model: Reward) -> None:
    other = np.where(MASK, IDS, (IDS + 1) % 11)
    np.testing.assert_array_equal(model(other, MASK).numpy(), model(IDS, MASK).numpy())
    changed = IDS.copy()
    changed[1, 1] = (changed[1, 1] + 1) % 11
    assert (model(changed, MASK).numpy() != model(IDS, MASK).numpy()).tolist() == [False, True, False]


def test_every_gradient_and_the_loss_of_pairs(model: Reward) -> None:
    def loss() -> cr.Tensor:
        return cr.ops.bradley_terry(model(IDS, MASK), model(IDS[::-1].copy(), MASK[::-1].copy()))

    assert cr.gradcheck_model(model.parameters(), loss) <= 1e-6


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((3, 5), bool), r"mask \(3, 5\) \(must be"),
        (np.zeros((3, 6), bool), "row 0 has no token"),
        (np.arange(6)[None].repeat(3, 0) > 2, "row 0 has padding before a token"),
    ],
    ids=["shape", "nothing", "padding in front"],
)
def test_a_mask_that_does_not_fit(model: Reward, mask: np.ndarray, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        model(IDS, mask)


def test_the_loss_is_that_of_bradley_and_terry(model: Reward) -> None:
    ids, mask = IDS[[[0, 1], [2, 0]]], MASK[[[0, 1], [2, 0]]]
    better, worse = model(ids[:, 0], mask[:, 0]), model(ids[:, 1], mask[:, 1])
    want = cr.ops.bradley_terry(better, worse).item()
    assert model.loss(Comparisons(ids, mask), np.zeros(2)).item() == pytest.approx(want, rel=1e-12)


@pytest.mark.requirement("R-412")
@pytest.mark.parametrize("family", ["gpt", "llama", "neox"])
def test_it_is_a_family_that_is_saved_and_loaded(family: str, tmp_path: Any) -> None:
    language_model: Any = tiny(family)
    model = Reward.on(language_model)
    assert cr.models.describe(model)["model_type"] == f"{family}-reward"
    cr.io.save_pretrained(model, cr.text.CharTokenizer.train("abcdefghijk"), tmp_path / "reward")
    loaded: Any = cr.load(tmp_path / "reward")[0]
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded(IDS, MASK).numpy(), model.eval()(IDS, MASK).numpy())


def test_what_has_no_body_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"body is a LSTMLM \(must be one of GPT, Llama, NeoX\)"):
        Reward.on(tiny("lstm"))
    with pytest.raises(ConfigError, match=r"must be made with Reward.on\(body\)"):
        Reward(tiny("gpt").config)
    with pytest.raises(ConfigError, match=r"tied is False .must be true"):
        cr.models.make("llama-reward", tied=False)


def test_the_last_bias_adds_the_same_to_all_rewards_and_does_not_learn() -> None:
    model = Reward.on(tiny("gpt"))
    assert frozen(model) == ["body.ln_f.bias"]


@pytest.mark.parametrize(("family", "bias"), [("gpt", "ln_f.bias"), ("neox", "final_layer_norm.bias")])
def test_it_can_be_let_learn_with_the_norm_it_belongs_to(family: str, bias: str) -> None:
    model = Reward.on(tiny(family))
    assert frozen(model) == [f"body.{bias}"]
    model.let_level_learn()
    assert frozen(model) == []
    model.freeze()
    model.let_level_learn()
    assert f"body.{bias}" in frozen(model)


def frozen(model: Reward) -> list[str]:
    return [name for name, p in model.named_parameters() if not p.requires_grad]
