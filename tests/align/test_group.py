"""Methods without a value head: the group is the baseline."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from chainrule.align import GRPO, GroupConfig, Reinforce
from chainrule.autograd.gradcheck import gradcheck_model
from chainrule.errors import ConfigError
from tests.models.tiny import tiny

METHODS = [Reinforce, GRPO]
RNG = np.random.default_rng(5)


def reward(rollout: Any) -> list[float]:
    return [float(answer.count(5)) for answer in rollout.answers]


def made(kind: Any, **settings: Any) -> Any:
    policy = tiny("gpt")
    return kind(policy, copy.deepcopy(policy), reward, GroupConfig(max_new_tokens=3, group=8, **settings))


@pytest.mark.parametrize("kind", METHODS)
def test_every_prompt_is_answered_by_a_group(kind: Any) -> None:
    method = made(kind)
    found = method.step([[1], [2, 3]])
    assert found["objective/kl"] == 0 and found["val/answer_length"] == 3
    experience = method.experience(method.roll_out([[1]] * 8 + [[2, 3]] * 8, 0))
    sums = experience.advantages.max(axis=1).reshape(2, 8) + experience.advantages.min(axis=1).reshape(2, 8)
    np.testing.assert_allclose(sums.sum(axis=1), 0, atol=1e-5)  # some are better, others as much worse


@pytest.mark.parametrize("kind", METHODS)
def test_gradients(kind: Any) -> None:
    method = made(kind, beta=0.3)
    experience = method.experience(method.roll_out([[1]] * 8, 0))
    for name in ("logs", "reference", "advantages"):
        noise = 0.2 * RNG.normal(size=experience.logs.shape) * experience.mask
        setattr(experience, name, getattr(experience, name).astype(np.float64) + noise)
    method.policy.to(np.float64)
    rows = np.arange(8)
    assert gradcheck_model(method.policy.parameters(), lambda: method.loss(experience, rows)[0]) < 1e-6


@pytest.mark.parametrize("kind", METHODS)
def test_the_reward_rises(kind: Any) -> None:
    method = made(kind, beta=0.01, lr=3e-3)
    seen = [method.step([[1], [2, 3], [4]], number)["objective/scores"] for number in range(15)]
    assert np.mean(seen[-3:]) > np.mean(seen[:3]) + 0.3


@pytest.mark.parametrize("kind", METHODS)
def test_answers_are_judged_at_the_temperature_at_which_they_are_drawn(kind: Any) -> None:
    method = made(kind, temperature=2.0)
    rollout = method.roll_out([[1]] * 8, 0)
    want = method.policy.eval().logprobs(rollout.ids, rollout.targets, temperature=2.0).numpy()
    experience = method.experience(rollout)
    for found in (experience.logs, experience.reference):
        np.testing.assert_array_equal(found, want)
    assert method.loss(experience, np.arange(8))[1]["policy/approxkl"] < 1e-12


def test_a_group_is_more_than_one() -> None:
    with pytest.raises(ConfigError, match="group is 1"):
        GroupConfig(group=1)
