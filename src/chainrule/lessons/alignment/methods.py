"""Every method of alignment in a small world, step by step, and where each of them must end."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.align import DPO, GRPO, PPO, GroupConfig, PPOConfig, Reinforce, World, preference_loss
from chainrule.align.worlds import Table
from chainrule.models import LanguageModel
from chainrule.optim import AdamW

LR = 2e-3
ANSWERS = 128  # in a rollout
METHODS = ("DPO", "PPO", "REINFORCE", "GRPO")

Steps = Iterator[LanguageModel]
"""The policy after each step, the same object each time."""


def small_world() -> World:
    """Two prompts, nine answers of two tokens; the reference is a GPT with random weights, rewards are normal."""
    return World.random(vocabulary=3, length=2, prompts=2, seed=1)


def by_dpo(world: World, loss: str, beta: float, steps: int) -> Steps:
    """A policy that learns from all pairs at once, with their exact probabilities."""
    policy: LanguageModel = copy.deepcopy(world.reference).unfreeze()
    model = DPO(policy, preference_loss(loss, beta=beta))
    pairs, targets = world.preferences()
    parameters = model.parameters()
    optimizer = AdamW(parameters, LR, weight_decay=0.0)
    for step in range(steps):
        parameters.zero_grad()
        model.loss(pairs, targets).backward()
        optimizer.step(LR * (1 - step / steps))
        yield policy


def by_rollouts(world: World, method: Any, steps: int, lr: float = LR) -> Steps:
    """A policy that learns from its own answers."""
    prompts = [[prompt] for prompt in world.prompts] * (ANSWERS // len(world.prompts) // method.group)
    for step in range(steps):
        method.step(prompts, step, lr * (1 - step / steps))
        yield method.policy


def trained(world: World, name: str, beta: float, steps: int) -> Steps:
    """A method by its name, with the settings that the lessons use."""
    if name == "DPO":
        return by_dpo(world, "sigmoid", beta, steps)
    policy: Any = copy.deepcopy(world.reference).unfreeze()
    common: dict[str, Any] = {"beta": beta, "max_new_tokens": world.answers.shape[1]}
    if name == "PPO":
        config = PPOConfig(**common, lam=1.0, epochs=2)
        return by_rollouts(world, PPO(policy, world.reference, world.score, config), steps)
    kind = {"REINFORCE": Reinforce, "GRPO": GRPO}[name]
    group = GroupConfig(**common, group=ANSWERS // len(world.prompts))
    return by_rollouts(world, kind(policy, world.reference, world.score, group), steps)


def distances(world: World, name: str, beta: float, steps: int, every: int) -> list[tuple[int, float]]:
    """(step, total variation to the best policy), from the start on."""
    best = world.optimum(beta)
    found = [(0, world.distance(world.policy(world.reference), best))]
    for step, policy in enumerate(trained(world, name, beta, steps), start=1):
        if step % every == 0:
            found.append((step, world.distance(world.policy(policy), best)))
    return found


def last(steps: Steps) -> LanguageModel:
    """The policy at the end."""
    *_, policy = steps
    return policy


def best_of_n(world: World, n: int) -> Table:
    """The policy that takes the best of n answers of the reference, exactly (P, N)

    The best of n is at most as good as an answer with probability F^n, F that of one answer.
    """
    reference = world.policy(world.reference)
    order = np.argsort(world.rewards, axis=1)
    sorted_p = np.take_along_axis(reference, order, axis=1)
    cumulated = np.cumsum(sorted_p, axis=1)
    picked = cumulated**n - (cumulated - sorted_p) ** n
    found = np.empty_like(reference)
    np.put_along_axis(found, order, picked, axis=1)
    return found


def grpo_optimum(world: World, beta: float, steps: int = 20_000, rate: float = 0.2) -> Table:
    """Where GRPO ends with exact gradients, for answers of two tokens (P, N)

    Rewards are divided by their deviation under the policy, and its estimate of the KL has the gradient of
    KL(π_ref ‖ π) at each token: another optimum than that of E[r] - β KL(π ‖ π_ref).
    """
    reference, V = world.policy(world.reference), round(world.answers.shape[0] ** 0.5)
    found = []
    for p_ref, rewards in zip(reference, world.rewards, strict=True):
        table, r = p_ref.reshape(V, V), rewards.reshape(V, V)
        first, second = table.sum(axis=1), table / table.sum(axis=1, keepdims=True)
        a, b = np.log(first), np.log(second)
        for _ in range(steps):
            f, s = _softmax(a), _softmax(b)
            p = f[:, None] * s
            centered = r - (p * r).sum()
            advantage = p * centered / np.sqrt((p * centered**2).sum())
            of_first = advantage.sum(axis=1)
            a = a + rate * (of_first - f * of_first.sum() + beta * (first - f))
            b = b + rate * (
                advantage - s * advantage.sum(axis=1, keepdims=True) + beta * f[:, None] * (second - s)
            )
        found.append((_softmax(a)[:, None] * _softmax(b)).reshape(-1))
    return np.array(found)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
