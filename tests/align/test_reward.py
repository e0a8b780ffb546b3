"""A reward model learns which of two answers is better, whatever the reason."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from chainrule.align import Preference
from chainrule.align.reward import RewardTraining, as_reward, comparisons, reward_metrics
from chainrule.align.rollouts import as_rows
from chainrule.autograd.gradcheck import gradcheck_model
from chainrule.models import Reward
from chainrule.optim import AdamW
from tests.models.tiny import tiny

RNG = np.random.default_rng(2)


def body() -> Any:
    return tiny("gpt")


def answers(count: int) -> list[list[int]]:
    return [RNG.integers(1, 11, size=RNG.integers(1, 6)).tolist() for _ in range(count)]


def preferred(better: Any, pairs: int = 60) -> list[Preference]:
    """Pairs of random answers, of which the first is better by this measure"""
    found: list[Preference] = []
    while len(found) < pairs:
        a, b = answers(2)
        if better(a) != better(b):
            found.append(Preference([1, 2], *((a, b) if better(a) > better(b) else (b, a))))
    return found


def trained(preferences: list[Preference], steps: int = 80, center: float = 0.0) -> RewardTraining:
    model = RewardTraining(Reward.on(body()), center)
    batch, parameters = comparisons(preferences), model.parameters()
    optimizer = AdamW(parameters, 1e-2, weight_decay=0.0)
    for _ in range(steps):
        parameters.zero_grad()
        model.loss(*batch).backward()
        optimizer.step(1e-2)
    return model


@pytest.mark.requirement("R-412")
def test_it_starts_from_the_body_and_knows_nothing() -> None:
    policy = body()
    before = policy.parameters().data.copy()
    model = Reward.on(policy)
    for name, array in policy.state().items():
        np.testing.assert_array_equal(model.body.state()[name], array)
    np.testing.assert_array_equal(policy.parameters().data, before)
    model.score.weight.data[:] = 0
    assert model.loss(*comparisons(preferred(len, 9))).item() == pytest.approx(math.log(2), rel=1e-6)


@pytest.mark.requirement("R-414")
@pytest.mark.parametrize("center", [0.0, 0.1])
def test_gradients(center: float) -> None:
    model = RewardTraining(Reward.on(body()), center).to(np.float64)
    batch = comparisons(preferred(len, 4))
    assert gradcheck_model(model.parameters(), lambda: model.loss(*batch)) < 1e-6


@pytest.mark.requirement("R-415")
def test_length_bias() -> None:
    """Judges who always prefer the shorter answer teach that short is good, and nothing else."""
    model = trained(preferred(lambda answer: -len(answer), 200), steps=100)
    fresh = answers(80)
    rewards = as_reward(model.reward)(as_rows([[1, 2]] * 80, fresh))
    assert np.corrcoef(rewards, [-len(answer) for answer in fresh])[0, 1] > 0.9


def test_accuracy_and_calibration_on_answers_it_has_not_seen() -> None:
    def better(answer: list[int]) -> float:
        return answer.count(3) - answer.count(4)

    model, new = trained(preferred(better, 150), steps=120), comparisons(preferred(better, 100))
    found = reward_metrics(model.reward, [new])
    assert found["accuracy"] > 0.8 and 0 <= found["calibration_error"] < 0.3
    assert found["margin"] > 0


def test_centering_pulls_the_sum_of_both_rewards_to_zero() -> None:
    plain = Reward.on(body())
    for parameter in plain.parameters():
        parameter.data *= 3
    batch = comparisons(preferred(len, 8))
    sums = plain.of_pairs(batch[0]).numpy().sum(axis=1)
    centered = RewardTraining(plain, center=0.3)
    extra = centered.loss(*batch).item() - plain.loss(*batch).item()
    assert extra == pytest.approx(0.3 * float((sums**2).mean()), rel=1e-4) and extra > 0
