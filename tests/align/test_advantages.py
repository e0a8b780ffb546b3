"""Rewards with a KL penalty, generalized advantages, and estimates of the KL."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.align.advantages import (
    KL_ESTIMATORS,
    gae,
    group_advantages,
    kl_estimate,
    kl_penalized,
    leave_one_out,
    whitened,
)
from chainrule.errors import ShapeError
from tests.vectors import vector

RNG = np.random.default_rng(3)


@pytest.mark.requirement("R-416")
def test_the_worked_example_of_a_penalized_reward() -> None:
    v = vector("der-kl-reward")
    inputs = v.inputs
    logs, reference = np.array([[inputs["logp"]]]), np.array([[inputs["logp_ref"]]])
    found = kl_penalized(np.array([inputs["r"]]), logs, reference, np.ones((1, 1), bool), inputs["beta"])
    v.check(found.item())


def test_the_score_comes_with_the_last_token_of_the_answer() -> None:
    mask = np.array([[False, True, True, False], [True, True, True, True], [False, True, False, False]])
    logs, reference = RNG.normal(size=(2, 3, 4))
    scores = np.array([5.0, 7.0, 9.0])
    found = kl_penalized(scores, logs, reference, mask, beta=0.3)
    assert (found[~mask] == 0).all()
    kl = np.where(mask, logs - reference, 0).sum(axis=1)
    np.testing.assert_allclose(found.sum(axis=1), scores - 0.3 * kl)
    np.testing.assert_allclose(
        found[[0, 1, 2], [2, 3, 1]], scores - 0.3 * (logs - reference)[[0, 1, 2], [2, 3, 1]]
    )


def by_definition(rewards: np.ndarray, values: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """A_t = Σ_k (γλ)^k δ_{t+k} of a single answer, as the paper has it"""
    following = np.append(values[1:], 0.0)
    surprises = rewards + gamma * following - values
    T = len(rewards)
    return np.array([sum((gamma * lam) ** (k - t) * surprises[k] for k in range(t, T)) for t in range(T)])


@pytest.mark.requirement("R-420")
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.9, 0.5), (1.0, 1.0), (0.8, 0.0)])
def test_advantages_are_those_of_the_definition(gamma: float, lam: float) -> None:
    first, last = (
        np.array([0, 2, 1]),
        np.array([5, 4, 2]),
    )  # answers begin after prompts and end before padding
    mask = (np.arange(6) >= first[:, None]) & (np.arange(6) < last[:, None])
    rewards, values = RNG.normal(size=(2, 3, 6))
    rewards = np.where(mask, rewards, 0.0)
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    for row in range(3):
        answer = slice(first[row], last[row])
        want = by_definition(rewards[row, answer], values[row, answer], gamma, lam)
        np.testing.assert_allclose(advantages[row, answer], want)
        np.testing.assert_allclose(returns[row, answer], want + values[row, answer])
    assert (advantages[~mask] == 0).all() and (returns[~mask] == 0).all()


@pytest.mark.requirement("R-420")
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_nothing_is_a_surprise_to_a_perfect_value(lam: float) -> None:
    """A reward of 1 at each token, and values that know how many are to come."""
    values = np.array([[4.0, 3.0, 2.0, 1.0]])
    advantages, returns = gae(np.ones((1, 4)), values, np.ones((1, 4), bool), gamma=1.0, lam=lam)
    np.testing.assert_array_equal(advantages, 0)
    np.testing.assert_array_equal(returns, values)


def test_shapes_must_agree() -> None:
    with pytest.raises(ShapeError, match=r"rewards \(1, 2\), values \(1, 3\)"):
        gae(np.ones((1, 2)), np.ones((1, 3)), np.ones((1, 3), bool))
    with pytest.raises(ShapeError, match="group is 2, of 3 scores"):
        leave_one_out(np.ones(3), 2)


def test_whitening_counts_tokens_of_answers_alone() -> None:
    mask = RNG.random((4, 5)) < 0.6
    found = whitened(RNG.normal(3, 7, size=(4, 5)), mask)
    assert found[mask].mean() == pytest.approx(0, abs=1e-12) and found[mask].std() == pytest.approx(1)
    assert (found[~mask] == 0).all()


def test_groups() -> None:
    scores = RNG.normal(size=12)
    for row in range(3):
        own = slice(4 * row, 4 * row + 4)
        z = (scores[own] - scores[own].mean()) / scores[own].std()
        np.testing.assert_allclose(group_advantages(scores, 4)[own], z, rtol=1e-6)
        for i in range(4 * row, 4 * row + 4):
            others = [scores[j] for j in range(4 * row, 4 * row + 4) if j != i]
            assert leave_one_out(scores, 4)[i] == pytest.approx(scores[i] - np.mean(others))
    assert (group_advantages(np.ones(4), 4) == 0).all()  # where all are alike nothing is to be learned


@pytest.mark.requirement("R-417")
@pytest.mark.parametrize("kind", KL_ESTIMATORS)
def test_estimates_of_the_kl(kind: str) -> None:
    """From samples of π: k1 and k3 within three standard errors of the exact KL; all are 0 where both agree."""
    p, q = RNG.dirichlet(np.full(6, 3.0), size=2)
    exact = float((p * np.log(p / q)).sum())
    drawn = RNG.choice(6, size=20_000, p=p)
    found = kl_estimate(np.log(p)[drawn], np.log(q)[drawn], kind)
    error = found.std() / np.sqrt(len(found))
    if kind == "k2":  # a bias of third order in the log-ratio
        assert found.mean() == pytest.approx(exact, rel=0.25)
    else:
        assert abs(found.mean() - exact) < 3 * error
    assert (kl_estimate(np.log(p), np.log(p), kind) == 0).all()
    if kind == "k3":
        assert found.min() >= 0 and found.std() < kl_estimate(np.log(p)[drawn], np.log(q)[drawn], "k1").std()
