"""PPO: the clipped losses, the value head, and what a step promises."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.align import PPO, PPOConfig
from chainrule.align.policy_gradient import clipped_surrogate
from chainrule.align.ppo import ActorCritic, value_loss
from chainrule.autograd.gradcheck import gradcheck_model
from chainrule.errors import ChainruleError, ConfigError
from tests.models.tiny import tiny
from tests.vectors import vector

RNG = np.random.default_rng(4)
PROMPTS = [[1, 2], [3], [4]] * 4


def reward(rollout: Any) -> list[float]:
    return [float(answer.count(5)) for answer in rollout.answers]


def ppo(**settings: Any) -> PPO:
    policy: Any = tiny("gpt")
    config = PPOConfig(max_new_tokens=3, **({"lr": 3e-3} | settings))
    return PPO(policy, copy.deepcopy(policy), reward, config)


@pytest.mark.requirement("R-419")
def test_the_worked_example_of_clipping() -> None:
    v = vector("der-ppo-clip")
    mask = np.ones((1, 1), bool)
    found = []
    for ratio, advantage in v.inputs["cases"]:
        logs, advantages = cr.Tensor(np.log([[ratio]])), np.array([[advantage]])
        found.append(clipped_surrogate(logs, np.zeros((1, 1)), advantages, mask, v.inputs["eps"])[0].item())
    v.check(found)


@pytest.mark.requirement("R-419")
def test_beyond_the_clip_there_is_no_gradient_where_it_would_pay() -> None:
    ratios = np.array([1.5, 0.5, 1.5, 0.5, 1.1])
    advantages = np.array([1.0, 1.0, -1.0, -1.0, 1.0])
    logs = cr.Tensor(np.log(ratios), requires_grad=True)
    loss, measured = clipped_surrogate(logs, np.zeros(5), advantages, np.ones(5, bool), 0.2)
    loss.backward()
    want = np.where([False, True, True, False, True], -ratios * advantages / 5, 0.0)
    assert logs.grad == pytest.approx(want)
    assert measured["policy/clipfrac"] == pytest.approx(2 / 5)


def test_values_are_clipped_too() -> None:
    before, returns = np.zeros((1, 3)), np.array([[1.0, 1.0, -1.0]])
    values = cr.Tensor(np.array([[0.5, 0.1, 0.5]]), requires_grad=True)
    loss, clipped = value_loss(values, before, returns, np.ones((1, 3), bool), clip=0.2)
    # The first has moved further than 0.2 towards its return: it is held. The last has moved away: it is not.
    assert loss.item() == pytest.approx(0.5 * (0.8**2 + 0.9**2 + 1.5**2) / 3)
    assert clipped == pytest.approx(1 / 3)
    loss.backward()
    assert values.grad == pytest.approx(np.array([[0.0, -0.9 / 3, 1.5 / 3]]))


@pytest.mark.parametrize("entropy", [0.0, 0.1])
def test_gradients_of_the_whole_loss(entropy: float) -> None:
    method = ppo(entropy_coef=entropy, value_coef=0.7)
    experience = method.experience(method.roll_out(PROMPTS, 0))
    for name in ("logs", "reference", "advantages", "values", "returns"):
        noise = RNG.choice([-0.6, -0.05, 0.05, 0.6], size=experience.logs.shape)  # not where a clip begins
        setattr(experience, name, getattr(experience, name).astype(np.float64) + noise * experience.mask)
    method.actor.to(np.float64)
    method.actor.value.weight.data[:] = 0.01 * RNG.normal(size=method.actor.value.weight.shape)
    rows = np.arange(len(PROMPTS))
    assert gradcheck_model(method.actor.parameters(), lambda: method.loss(experience, rows)[0]) < 1e-6


@pytest.mark.requirement("R-420")
def test_the_value_head_starts_at_zero_and_entropies_are_exact() -> None:
    actor = ActorCritic(tiny("gpt")).eval()  # type: ignore[arg-type]
    ids = RNG.integers(11, size=(2, 5))
    logs, values, none = actor(ids, ids)
    again, _, entropy = actor(ids, ids, entropy=True)
    assert (values.numpy() == 0).all() and none is None and entropy is not None
    np.testing.assert_allclose(logs.numpy(), again.numpy(), rtol=1e-5)
    p = np.exp(cr.ops.log_softmax(actor.policy(ids)).numpy())
    np.testing.assert_allclose(entropy.numpy(), -(p * np.log(p)).sum(axis=-1), rtol=1e-5)


def test_answers_are_judged_at_the_temperature_at_which_they_are_drawn() -> None:
    method = ppo(temperature=2.0, entropy_coef=0.1)
    rollout = method.roll_out(PROMPTS, 0)
    experience = method.experience(rollout)
    with method.policy.answering():
        logits = method.policy(rollout.ids) * 0.5
        logs = cr.ops.log_softmax(logits).numpy()
    want = np.take_along_axis(logs, np.maximum(rollout.targets, 0)[..., None], -1)[..., 0]
    for found in (experience.logs, experience.reference):
        np.testing.assert_allclose(found[rollout.mask], want[rollout.mask], rtol=1e-4)
    measured = method.loss(experience, np.arange(len(PROMPTS)))[1]
    entropies = -(np.exp(logs) * logs).sum(axis=-1)
    assert measured["val/ratio_var"] < 1e-9
    assert measured["policy/entropy"] == pytest.approx(entropies[rollout.mask].mean(), rel=1e-4)


def test_gradients_count_as_clipping_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    method = ppo(grad_clip=1e-3)
    counted: list[float] = []
    step = method.optimizer.step

    def watched(lr: float, *, scale: float = 1.0) -> None:
        counted.append(scale * cr.optim.global_norm(method.learner.parameters()))
        step(lr, scale=scale)

    monkeypatch.setattr(method.optimizer, "step", watched)
    found = method.update(method.experience(method.roll_out(PROMPTS, 0)), 0, 1e-3)
    assert counted and counted == pytest.approx([1e-3] * len(counted))
    assert found["policy/grad_norm"] > 1e-3  # that before clipping


@pytest.mark.requirement("R-411")
def test_the_reference_is_frozen_and_the_reward_rises() -> None:
    method = ppo(beta=0.01, epochs=2)
    before = method.reference.parameters().data.copy()
    seen = [method.step(PROMPTS * 4, number) for number in range(15)]
    np.testing.assert_array_equal(method.reference.parameters().data, before)
    first, last = (np.mean([m["objective/scores"] for m in part]) for part in (seen[:3], seen[-3:]))
    assert last > first + 0.3 and seen[-1]["objective/kl"] > 0
    assert {"time/rollout", "time/scoring", "time/update"} <= seen[0].keys()


def test_the_same_seed_gives_the_same_bits() -> None:
    blocks = []
    for _ in range(2):
        method = ppo(epochs=2, minibatches=3)
        for number in range(3):
            method.step(PROMPTS, number)
        blocks.append(method.policy.parameters().data.tobytes())
    assert blocks[0] == blocks[1]


def test_beta_follows_a_target() -> None:
    """Too far from the reference, β grows; nearer than it may be, β falls."""
    for target, grows in ((1e-9, True), (1e9, False)):
        method = ppo(target_kl=target, horizon=100, lr=3e-2)
        method.step(PROMPTS * 9)  # away from the reference
        before, kl = method.beta, method.step(PROMPTS * 9, 1)["objective/kl"]
        assert kl > 0 and (method.beta > before) is grows


def test_wrong_use_is_named() -> None:
    policy: Any = tiny("gpt")
    with pytest.raises(ConfigError, match="is the reference itself"):
        PPO(policy, policy, reward)
    with pytest.raises(ConfigError, match="got GRULM"):
        PPO(tiny("gru"), policy, reward)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"lam is 1\.5"):
        PPOConfig(lam=1.5)
    with pytest.raises(ConfigError, match="beta is -1"):
        PPOConfig(beta=-1)
    method = PPO(policy, copy.deepcopy(policy), lambda rollout: [0.0], PPOConfig(max_new_tokens=2))
    with pytest.raises(ChainruleError, match=r"reward: gave an array of shape \(1,\) for 2 answers"):
        method.step([[1], [2]])
