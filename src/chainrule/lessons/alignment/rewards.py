"""Rewards that are learned from few comparisons: a policy finds what they did not say.

Hacking: good answers have some tokens 1 and not too many, but the reference writes so few that every comparison says
"more is better". Without a penalty for leaving the reference a policy goes where the reward model was never taught.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.align import PPO, PPOConfig, Preference, World
from chainrule.align.reward import as_reward, comparisons
from chainrule.align.rollouts import as_rows, roll_out
from chainrule.lessons.alignment.methods import by_rollouts
from chainrule.models import GPT, GPTConfig, Reward
from chainrule.optim import AdamW
from chainrule.random import generator, seeded

GOOD, ENOUGH, POINT = 1, 2, 0.1  # the token, how many of it are best, and what each is worth
VOCABULARY, LENGTH = 4, 5
RARE = (0.3, 0.1, 0.3, 0.3)  # how often the reference writes each token


class Goodhart(NamedTuple):
    """A training on a learned reward: after each step what it says, and what is true."""

    proxy: list[float]
    true: list[float]


def true_score(answer: Any) -> float:
    """A tenth of a point for each good token up to two; beyond, each takes one away again."""
    count = int(np.count_nonzero(np.asarray(answer) == GOOD))
    return POINT * (count if count <= ENOUGH else 2 * ENOUGH - count)


def careless_world() -> World:
    """A reference that seldom writes the good token, and all answers with their true scores."""
    answers = np.array(list(product(range(VOCABULARY), repeat=LENGTH)), np.int32)
    rewards = np.array([[true_score(answer) for answer in answers]])
    return World(_rare_reference(), (0,), answers, rewards)


def _rare_reference() -> GPT:
    """A small GPT that has learned how often each token comes."""
    config = GPTConfig(n_layer=1, n_head=2, n_embd=32, block_size=LENGTH + 1, vocab_size=VOCABULARY)
    with seeded(0):
        model = GPT(config)
    rows = generator("rare tokens", seed=0).choice(VOCABULARY, size=(256, LENGTH + 1), p=RARE)
    rows[:, 0] = 0
    _descend(model, lambda: model.loss(rows[:, :-1], rows[:, 1:]), steps=80, lr=3e-3)
    return model.eval()


def learned_reward(world: World, pairs: int = 300, steps: int = 60) -> World:
    """The world as a reward model sees it that was trained on comparisons of the reference's own answers

    Rewards have no unit: they are scaled to the mean and the deviation of the true scores under the reference.
    """
    drawn = roll_out(world.reference, [[0]] * (2 * pairs), max_new_tokens=LENGTH, seed=1).answers
    found = []
    for one, other in zip(drawn[::2], drawn[1::2], strict=True):
        if true_score(one) != true_score(other):
            better, worse = sorted((one, other), key=true_score, reverse=True)
            found.append(Preference([0], better, worse))
    with seeded(1):
        model = Reward.on(world.reference)
    batch = comparisons(found)
    _descend(model, lambda: model.loss(*batch), steps=steps, lr=3e-3)
    said = np.asarray(as_reward(model)(world.rows()), np.float64).reshape(world.rewards.shape)
    p = world.policy(world.reference)
    return replace(world, rewards=_standard(said, p) * _spread(world.rewards, p) + (p * world.rewards).sum())


def hacked(world: World, seen: World, beta: float, steps: int = 60) -> Goodhart:
    """PPO on a learned reward; expectations are exact."""
    policy: Any = copy.deepcopy(world.reference).unfreeze()
    config = PPOConfig(beta=beta, max_new_tokens=LENGTH, epochs=2, lam=1.0)
    method = PPO(policy, world.reference, seen.score, config)
    tables = [world.policy(world.reference)]
    tables += [world.policy(now) for now in by_rollouts(world, method, steps, lr=5e-3)]
    return Goodhart(list(map(seen.reward, tables)), list(map(world.reward, tables)))


def length_bias(pairs: int = 200, fresh: int = 80) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Lengths and rewards of new answers (n,), by a model whose judges always preferred the shorter answer."""
    draw = generator("length bias", seed=0)

    def answer() -> list[int]:
        return [int(token) for token in draw.integers(1, 11, size=draw.integers(1, 9))]

    found: list[Preference] = []
    while len(found) < pairs:
        one, other = answer(), answer()
        if len(one) != len(other):
            found.append(Preference([0], *sorted((one, other), key=len)))
    with seeded(0):
        body = GPT(GPTConfig(n_layer=1, n_head=2, n_embd=32, block_size=12, vocab_size=11))
        model = Reward.on(body)
    batch = comparisons(found)
    _descend(model, lambda: model.loss(*batch), steps=120, lr=5e-3)
    new = [answer() for _ in range(fresh)]
    rewards = np.asarray(as_reward(model)(as_rows([[0]] * fresh, new)))
    return np.array([len(each) for each in new]), rewards


def _descend(model: Any, loss: Any, *, steps: int, lr: float) -> None:
    parameters = model.parameters()
    optimizer = AdamW(parameters, lr, weight_decay=0.0)
    for _ in range(steps):
        parameters.zero_grad()
        loss().backward()
        optimizer.step(lr)


def _spread(x: Any, p: Any) -> Any:
    """The standard deviation of x under the probabilities p."""
    return np.sqrt((p * (x - (p * x).sum()) ** 2).sum())


def _standard(x: Any, p: Any) -> Any:
    """x with mean 0 and deviation 1 under the probabilities p."""
    return (x - (p * x).sum()) / _spread(x, p)
