"""Rewards that were learned from too few kinds of answers mislead a policy that may go anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.lessons.alignment.rewards import (
    GOOD,
    careless_world,
    hacked,
    learned_reward,
    length_bias,
    true_score,
)


@pytest.mark.requirement("R-418")
def test_without_a_penalty_the_learned_reward_rises_while_the_true_score_falls() -> None:
    world = careless_world()
    seen = learned_reward(world)
    counts = (world.answers == GOOD).sum(axis=1)
    means = [seen.rewards[0][counts == n].mean() for n in range(6)]
    assert means == sorted(means)  # it believes that more is better
    assert true_score([1, 1, 0, 0, 0]) == 0.2 and true_score([1] * 5) == pytest.approx(-0.1)
    free, held = (hacked(world, seen, beta) for beta in (0.0, 0.1))
    assert free.proxy[-1] > free.proxy[0] + 0.05 and free.true[-1] < free.true[0]
    assert held.proxy[-1] > held.proxy[0] and held.true[-1] > held.true[0]


@pytest.mark.requirement("R-415")
def test_judges_who_prefer_short_answers_teach_that_short_is_good() -> None:
    lengths, rewards = length_bias()
    assert np.corrcoef(-lengths, rewards)[0, 1] > 0.9
