"""Losses on pairs: negative sampling and Bradley-Terry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops import bradley_terry, negative_sampling
from tests.vectors import vector


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# -- negative sampling ---------------------------------------------------------------------------------------


def cat_the_algorithm() -> dict[str, cr.Tensor]:
    inputs = vector("der-negative-sampling").inputs
    names = "center", "positive", "negatives"
    return {name: cr.Tensor(np.array(inputs[name]), requires_grad=True) for name in names}


@pytest.mark.requirement("R-254")
def test_negative_sampling_terms() -> None:
    """Each half of the loss by itself: e^-loss is the probability the model gives to the right answer."""
    positive, negative = vector("004-7.3.4-positive"), vector("004-7.3.4-negative")
    cat, the = np.array(positive.inputs["center"]), np.array(positive.inputs["context"])
    algorithm = np.array(negative.inputs["context"])
    sigma = np.exp(-negative_sampling(cat, the, np.empty((0, 3))))
    sure = 1e9 * cat  # σ(cat · 1e9 cat) = 1, which leaves the negative half
    sigma_neg = np.exp(-negative_sampling(cat, sure, algorithm[None]))
    positive.check({"dot": np.log(sigma / (1 - sigma)), "sigma": sigma})
    negative.check({"dot": -np.log(sigma_neg / (1 - sigma_neg)), "sigma_neg": sigma_neg})


@pytest.mark.requirement("R-254")
def test_negative_sampling_gradients() -> None:
    v = vector("der-negative-sampling")
    words = cat_the_algorithm()
    loss = negative_sampling(*words.values())
    loss.backward()
    v.check({"loss": loss} | {f"d_{name}": word.grad for name, word in words.items()})


@pytest.mark.requirement("R-254")
def test_negative_sampling_cost() -> None:
    """k + 1 dot products instead of one for every word of the vocabulary."""
    v = vector("004-7.3.3-cost")
    center, everyone = normal(3), np.zeros((v.inputs["V"], 3))
    dots = []
    for k in v.inputs["k"]:
        _, (*_, s_p, s_n, _) = negative_sampling.forward(center, normal(3), normal(k, 3))
        dots.append(np.size(s_p) + np.size(s_n))
    v.check({"softmax": cr.ops.linear(center, everyone).size, "neg": dots})


@pytest.mark.requirement("R-255")
def test_a_step_pulls_and_pushes() -> None:
    cat, the, others = cat_the_algorithm().values()
    before = cat.numpy() @ the.numpy(), cat.numpy() @ others.numpy()[0]
    negative_sampling(cat, the, others).backward()
    for word in (cat, the, others):
        word.data -= 0.1 * word.grad
    assert cat.numpy() @ the.numpy() > before[0]
    assert cat.numpy() @ others.numpy()[0] < before[1]


def test_reductions_of_negative_sampling() -> None:
    args = normal(4, 5), normal(4, 5, seed=1), normal(4, 3, 5, seed=2)
    each = negative_sampling(*args, reduction="none")
    one_by_one = [float(negative_sampling(*(a[i] for a in args))) for i in range(4)]
    np.testing.assert_allclose(each, one_by_one, rtol=1e-14)
    assert float(negative_sampling(*args, reduction="sum")) == pytest.approx(each.sum(), rel=1e-14)
    assert float(negative_sampling(*args)) == pytest.approx(each.mean(), rel=1e-14)


# -- Bradley-Terry -------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-413")
def test_preference_probabilities() -> None:
    strengths = vector("004-13.7.3-bt-strengths")
    rewards = np.log(strengths.inputs["pairs"])
    strengths.check(np.exp(-bradley_terry(*rewards.T, reduction="none")))

    v = vector("004-13.7.3-bt-rewards")
    p = np.exp(-bradley_terry(np.array(v.inputs["r_i"]), np.array(v.inputs["r_j"])))
    v.check({"difference": np.log(p / (1 - p)), "p": p})


@pytest.mark.requirement("R-414")
def test_reward_loss() -> None:
    v = vector("der-reward-model-loss")
    chosen = cr.Tensor(np.array(v.inputs["z"]), requires_grad=True)
    rejected = cr.Tensor(np.zeros(3), requires_grad=True)
    loss = bradley_terry(chosen, rejected, reduction="none")
    loss.backward(np.ones(3))
    assert chosen.grad is not None and rejected.grad is not None
    v.check({"loss": loss, "dz": chosen.grad})
    np.testing.assert_array_equal(rejected.grad, -chosen.grad)


@pytest.mark.requirement("R-414")
@given(st.lists(st.tuples(*[st.integers(-500, 500)] * 2), min_size=1, max_size=5), st.integers(-1000, 1000))
def test_only_differences_matter(pairs: list[tuple[int, int]], shift: int) -> None:
    chosen, rejected = np.array(pairs, dtype=float).T / 8  # eighths: shifting them is exact
    assert bradley_terry(chosen + shift, rejected + shift) == bradley_terry(chosen, rejected)


@given(st.floats(-1e300, 1e300))
def test_finite_for_any_difference(z: float) -> None:
    """-log σ(z) is finite where σ(z) rounds to 0, and the gradient stays in [-1, 0]."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        loss, saved = bradley_terry.forward(np.array([z]), np.array([0.0]))
        dz = bradley_terry.backward(np.array(1.0), saved, (True, True))[0]
    assert dz is not None
    assert loss == pytest.approx(max(-z, 0) + np.log1p(np.exp(-abs(z))), rel=1e-15)
    assert np.isfinite(loss) and loss >= 0 and -1 <= dz[0] <= 0


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((4, 5), (4, 6), (4, 3, 5)), "negative_sampling: center has shape (4, 5), positive (4, 6)"),
        (((4, 5), (4, 5), (4, 3, 6)), "negative_sampling: negatives have shape (4, 3, 6), center (4, 5)"),
        (((4, 5), (4, 5), (4, 5)), "negative_sampling: negatives have shape (4, 5), center (4, 5)"),
    ],
)
def test_negative_sampling_errors(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ShapeError) as error:
        negative_sampling(*(np.zeros(shape) for shape in shapes))
    assert str(error.value).startswith(message)


def test_bradley_terry_errors() -> None:
    with pytest.raises(ShapeError, match=r"bradley_terry: chosen has shape \(3,\), rejected has \(4,\)"):
        bradley_terry(np.zeros(3), np.zeros(4))
    with pytest.raises(ConfigError, match="bradley_terry: reduction is 'median'"):
        bradley_terry(np.zeros(3), np.zeros(3), reduction="median")
