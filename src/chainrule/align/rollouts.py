"""Rollouts: answers that a policy writes by itself, by the compiled decoder, many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.data import pad
from chainrule.errors import ConfigError
from chainrule.generate import Request, Sampling, run
from chainrule.generate.session import session
from chainrule.models import LanguageModel
from chainrule.random import generator
from chainrule.types import IGNORE, Ids

Prompts = Sequence[Sequence[int]]


class Rollout(NamedTuple):
    """Prompts with an answer each, as rows to train on: targets (B, T) count in the answers alone."""

    ids: Ids
    targets: Ids
    prompts: list[list[int]]
    answers: list[list[int]]
    """The end token included, where the policy wrote it."""

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Where a token of an answer is predicted (B, T)"""
        return self.targets != IGNORE

    def ended(self, end: int | None) -> npt.NDArray[np.bool_]:
        """Which answers the policy has ended itself (B,)"""
        return np.array([answer[-1] == end for answer in self.answers])


def roll_out(
    policy: LanguageModel,
    prompts: Prompts,
    *,
    max_new_tokens: int,
    end: int | None = None,
    temperature: float = 1.0,
    seed: int = 0,
    number: int = 0,
    weights: str = "fp32",
) -> Rollout:
    """One answer to each prompt, in one batch. What is drawn depends on (seed, number, row) alone."""
    longest = max(map(len, prompts)) + max_new_tokens - 1  # the last token is written and not read
    if not policy.any_length and longest > policy.context:
        said = f"prompts of up to {max(map(len, prompts))} tokens and answers of {max_new_tokens}"
        raise ConfigError(f"rollout: {said} (must fit into the model's context of {policy.context})")
    stops = () if end is None else (end,)
    seeds = generator("rollout", number, seed=seed).integers(2**63, size=len(prompts))
    requests = []
    for prompt, own in zip(prompts, seeds.tolist(), strict=True):
        how = Sampling(max_new_tokens=max_new_tokens, temperature=temperature, stop_tokens=stops, seed=own)
        requests.append(Request(list(prompt), how, policy.config.vocab_size))
    for _ in run(session(policy, weights, batch=len(requests)), requests):
        pass
    answers = [[*r.tokens, *(stops if r.finish == "stop" else ())] for r in requests]
    return as_rows(prompts, answers)


def as_rows(prompts: Prompts, answers: Prompts) -> Rollout:
    """Prompts and answers as inputs and targets, padded at the end."""
    rows = [[*prompt, *answer][:-1] for prompt, answer in zip(prompts, answers, strict=True)]
    targets = [[IGNORE] * (len(p) - 1) + list(a) for p, a in zip(prompts, answers, strict=True)]
    return Rollout(
        pad(rows)[0], pad(targets, value=IGNORE)[0], [list(p) for p in prompts], [list(a) for a in answers]
    )


def best_of(
    policy: LanguageModel, prompts: Prompts, reward: Callable[[Rollout], Any], n: int, **how: Any
) -> tuple[Rollout, npt.NDArray[np.floating[Any]]]:
    """Of n answers to each prompt the one with the highest reward, and that reward (P,)

    `how` are options of `roll_out`.
    """
    if n < 1:
        raise ConfigError(f"best_of: n is {n} (must be at least 1)")
    drawn = roll_out(policy, [prompt for prompt in prompts for _ in range(n)], **how)
    scores = np.asarray(reward(drawn), np.float64).reshape(-1, n)
    best = scores.argmax(axis=1)
    chosen = [drawn.answers[row * n + place] for row, place in enumerate(best.tolist())]
    return as_rows(prompts, chosen), scores[np.arange(len(best)), best]
