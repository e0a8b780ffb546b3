"""Two models compared by their answers to prompts that are held back: win rates with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from chainrule.data import load_conversations
from chainrule.models import Model
from chainrule.pipeline.config import PipelineConfig
from chainrule.pipeline.stages import TOGETHER, Answered, answered
from chainrule.text import Tokenizer

COMPARED = 1_000_000  # the first number of rollouts that are compared, not learned from
Z = 1.959963984540054  # of a normal distribution: 95 % lie within


class WinRate(NamedTuple):
    """How often a model is better than another; a tie is half a win."""

    wins: int
    ties: int
    losses: int

    @property
    def total(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def rate(self) -> float:
        return (self.wins + self.ties / 2) / max(1, self.total)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.rate, self.total)


def wilson(rate: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson 1927): within 0 and 1, also for few and for extreme ones

    >>> tuple(round(end, 3) for end in wilson(0.5, 100)), tuple(round(end, 3) for end in wilson(1.0, 10))
    ((0.404, 0.596), (0.722, 1.0))
    """
    if not n:
        return 0.0, 1.0
    middle = (rate + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def held_out(config: PipelineConfig) -> list[str]:
    """Questions that no stage has learned from."""
    return [each.question for each in load_conversations("docstrings").parts()[1]][: config.compared]


def answers_of(model: Model, tokenizer: Tokenizer, config: PipelineConfig) -> list[Answered]:
    """One answer to each question, with the same draws for every model."""
    prompts, found = held_out(config), []
    for first in range(0, len(prompts), TOGETHER):
        some = prompts[first : first + TOGETHER]
        found += [each for [each] in answered(model, tokenizer, some, config, number=COMPARED + first)]
    return found


def win_rate(one: Sequence[Answered], other: Sequence[Answered]) -> WinRate:
    """How often the first is better than the second, prompt by prompt."""
    pairs = [(a.score, b.score) for a, b in zip(one, other, strict=True)]
    wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    return WinRate(wins, len(pairs) - wins - losses, losses)
