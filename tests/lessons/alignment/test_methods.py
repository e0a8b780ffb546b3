"""Where each method ends in a world whose best policy is known."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.lessons.alignment.methods import best_of_n, distances, grpo_optimum, last, small_world, trained

BETA = 0.5
WORLD = small_world()


@pytest.mark.requirement("R-422")
def test_dpo_arrives_at_the_best_policy() -> None:
    found = distances(WORLD, "DPO", BETA, 200, 100)
    assert found[0][1] > 0.5 and found[-1] == (200, found[-1][1]) and found[-1][1] < 1e-3


def test_ppo_comes_within_a_twentieth() -> None:
    assert distances(WORLD, "PPO", BETA, 120, 120)[-1][1] < 0.05


def test_grpo_has_an_optimum_of_its_own_and_goes_there() -> None:
    """It is not broken: with exact gradients it ends as far from the best policy as with samples."""
    own, best = grpo_optimum(WORLD, BETA), WORLD.optimum(BETA)
    assert own.sum(axis=1) == pytest.approx(1)
    assert WORLD.distance(own, best) == pytest.approx(0.178, abs=0.002)
    policy = WORLD.policy(last(trained(WORLD, "GRPO", BETA, 120)))
    assert WORLD.distance(policy, own) < 0.08 < 0.12 < WORLD.distance(policy, best)


def test_the_best_of_n_is_that_of_drawing_n() -> None:
    np.testing.assert_allclose(best_of_n(WORLD, 1), WORLD.policy(WORLD.reference))
    exact = best_of_n(WORLD, 3)
    assert exact.sum(axis=1) == pytest.approx(1)
    draw = np.random.default_rng(0)
    p = WORLD.policy(WORLD.reference)[0]
    drawn = draw.choice(len(p), size=(20_000, 3), p=p / p.sum())
    picked = np.take_along_axis(drawn, WORLD.rewards[0][drawn].argmax(axis=1)[:, None], axis=1)
    np.testing.assert_allclose(np.bincount(picked[:, 0], minlength=len(p)) / 20_000, exact[0], atol=0.015)
    assert WORLD.reward(exact) > WORLD.reward(best_of_n(WORLD, 2)) > WORLD.reward(best_of_n(WORLD, 1))
