"""Every method against the best policy, which is known exactly."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from chainrule.align import DPO, GRPO, PPO, GroupConfig, PPOConfig, Reinforce, World, preference_loss
from chainrule.errors import ConfigError
from chainrule.models import LanguageModel
from chainrule.optim import AdamW

BETA = 0.5


@pytest.fixture(scope="module")
def world() -> World:
    return World.random(vocabulary=3, length=2, prompts=2, seed=1)


def learner(world: World) -> Any:
    return copy.deepcopy(world.reference).unfreeze()


def start(world: World) -> float:
    return world.distance(world.policy(world.reference), world.optimum(BETA))


def objective(world: World, policy: Any) -> float:
    return world.reward(policy) - BETA * world.kl(policy)


def test_all_answers_are_listed(world: World) -> None:
    assert world.answers.shape == (9, 2) and len(np.unique(world.answers, axis=0)) == 9
    np.testing.assert_allclose(world.policy(world.reference).sum(axis=1), 1, rtol=1e-5)
    assert world.kl(world.policy(world.reference)) == pytest.approx(0, abs=1e-7)


@pytest.mark.requirement("R-422")
def test_no_policy_is_better_than_the_optimum(world: World) -> None:
    best = world.optimum(BETA)
    np.testing.assert_allclose(best.sum(axis=1), 1)
    rng = np.random.default_rng(0)
    for size in (0.01, 0.3, 3.0):
        for _ in range(20):
            other = best * np.exp(size * rng.normal(size=best.shape))
            assert objective(world, other / other.sum(axis=1, keepdims=True)) < objective(world, best)


def test_the_frontier(world: World) -> None:
    """A smaller β buys more reward with more KL, up to the best answer alone."""
    betas, kls, rewards = zip(*world.frontier([10.0, 1.0, 0.3, 0.01]), strict=True)
    assert list(kls) == sorted(kls) and list(rewards) == sorted(rewards) and betas[0] == 10.0
    assert rewards[-1] == pytest.approx(world.rewards.max(axis=1).mean(), abs=1e-6)
    assert kls[0] < 0.01


@pytest.mark.requirement("R-422")
@pytest.mark.parametrize("loss", ["sigmoid", "robust"])
def test_dpo_reaches_the_optimum(world: World, loss: str) -> None:
    """Exact Bradley-Terry preferences lead to the closed form within 1e-3 in total variation."""
    model = DPO(learner(world), preference_loss(loss, beta=BETA))
    pairs, targets = world.preferences()
    if loss == "robust":  # a tenth of the labels is wrong, and the loss knows it
        pairs = pairs._replace(agreement=0.9 * pairs.agreement + 0.1 * (1 - pairs.agreement))
    parameters = model.parameters()
    optimizer, steps = AdamW(parameters, 3e-3, weight_decay=0.0), 260
    for step in range(steps):
        parameters.zero_grad()
        model.loss(pairs, targets).backward()
        optimizer.step(3e-3 * (1 - step / steps))
    assert start(world) > 0.5
    assert world.distance(world.policy(model.policy), world.optimum(BETA)) < 1e-3


def trained(world: World, method: Any, steps: int, lr: float, answers: int) -> LanguageModel:
    prompts = [[prompt] for prompt in world.prompts] * (answers // method.group)
    for step in range(steps):
        method.step(prompts, step, lr * (1 - step / steps))
    policy: LanguageModel = method.policy
    return policy


@pytest.mark.requirement("R-417", "R-420")
def test_before_the_first_update_nothing_has_changed(world: World) -> None:
    """The ratio is exactly 1, nothing is clipped, and the KL is exactly 0."""
    method = PPO(learner(world), world.reference, world.score, PPOConfig(max_new_tokens=2, epochs=1))
    found = method.step([[0], [1]] * 8)
    assert found["val/ratio"] == 1 and found["val/ratio_var"] == 0
    assert found["policy/clipfrac"] == 0 and found["policy/approxkl"] == 0
    assert found["objective/kl"] == 0 and found["objective/rlhf_reward"] == found["objective/scores"]
    assert method.step([[0], [1]] * 8, 1)["objective/kl"] != 0


def test_ppo_comes_near_the_optimum(world: World) -> None:
    config = PPOConfig(beta=BETA, max_new_tokens=2, lam=1.0, epochs=2, whiten=False)
    policy = trained(world, PPO(learner(world), world.reference, world.score, config), 50, 3e-3, 64)
    assert world.distance(world.policy(policy), world.optimum(BETA)) < 0.15 < start(world)


def test_reinforce_comes_near_the_optimum(world: World) -> None:
    config = GroupConfig(beta=BETA, max_new_tokens=2, group=64)
    policy = trained(world, Reinforce(learner(world), world.reference, world.score, config), 60, 3e-3, 64)
    assert world.distance(world.policy(policy), world.optimum(BETA)) < 0.1 < start(world)


def test_grpo_gains_most_of_what_can_be_gained(world: World) -> None:
    """Its optimum is another one, but not far in value."""
    config = GroupConfig(beta=BETA, max_new_tokens=2, group=64)
    policy = trained(world, GRPO(learner(world), world.reference, world.score, config), 50, 3e-3, 64)
    values = [
        objective(world, p)
        for p in (world.policy(world.reference), world.policy(policy), world.optimum(BETA))
    ]
    assert values[1] > values[0] + 0.8 * (values[2] - values[0])


def test_a_world_too_large_to_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"10,000 answers \(must be at most 4,096"):
        World.random(vocabulary=10, length=4)
    with pytest.raises(ConfigError, match="5 prompts of 3 tokens"):
        World.random(vocabulary=3, prompts=5)
