"""From counts to probabilities: what was seen gives some of its probability to what was not.

Every smoother turns the counts of a level into two arrays, and one recursion reads them all:

    P(w | c) = probability of the gram (c, w)       if it was seen
             = left[c] P(w | shorter c)             if c was seen, but never before w
             = P(w | shorter c)                     if c was never seen; below the shortest, every token alike

Katz 1987, Gale and Sampson 1995; Kneser and Ney 1995, Chen and Goodman 1998
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from chainrule.errors import ConfigError
from chainrule.models.ngram.grams import Level
from chainrule.types import Array


class Weights(NamedTuple):
    """The probabilities of one level."""

    probabilities: Array  # (g,) P(w | c) of each gram
    left: Array  # (c,) what a context leaves to the shorter one


class Smoothing(Protocol):
    """Turns counts into probabilities. `tokens` is the number of tokens that can follow; `start` is the token with
    nothing before it. None marks an unused level."""

    def weights(self, levels: list[Level], tokens: int, start: int) -> Sequence[Weights | None]: ...


MOST = 1e12  # far beyond it all tokens are alike, and numbers overflow


class Additive:
    """`s` is added to every count: 0 is maximum likelihood, 1 Laplace's rule, and towards ∞ all are alike."""

    def __init__(self, s: float = 1.0) -> None:
        if not 0 <= s <= MOST:
            raise ConfigError(f"smoothing: s is {s} (must be a number from 0 to {MOST:g})")
        self.s = s

    def weights(self, levels: list[Level], tokens: int, start: int) -> Sequence[Weights | None]:
        top = levels[-1]
        total = top.totals + self.s * tokens  # (c,)
        own = Weights((top.counts + self.s) / total[top.owners], self.s * tokens / total)
        return [*[None] * (len(levels) - 1), own]


class GoodTuring:
    """A gram seen r times counts as r* = (r + 1) N(r + 1) / N(r), N(r) being how many grams are seen r times.

    What that leaves goes to the tokens a context has not seen, in proportion to the shorter context (Katz).
    """

    def weights(self, levels: list[Level], tokens: int, start: int) -> Sequence[Weights | None]:
        found: list[Weights] = []
        for level in levels:
            probabilities = good_turing(level.counts) / level.totals[level.owners]
            lower = _shorter(levels, found, tokens)
            free = 1 - level.sum_by_context(probabilities)  # (c,)
            rest = 1 - level.sum_by_context(lower)  # what the shorter context gives to tokens not seen here
            full = rest < 1e-9  # every token was seen here: no unseen token is left
            probabilities = np.where(
                full[level.owners], probabilities / (1 - free)[level.owners], probabilities
            )
            found.append(Weights(probabilities, np.where(full, 0.0, free / np.where(full, 1.0, rest))))
        return found


class KneserNey:
    """Interpolated Kneser–Ney with the three discounts of Chen and Goodman ("modified").

    Each count gives up D(1), D(2) or D(3 and more), shared out like the shorter context. For shorter contexts
    a count is not how often a gram occurs but after how many different tokens: "Francisco" is frequent, yet
    only after "San". A context at the start of a document has nothing before it and keeps its plain counts.
    """

    def weights(self, levels: list[Level], tokens: int, start: int) -> Sequence[Weights | None]:
        found: list[Weights] = []
        for k, level in enumerate(levels):
            lower = _shorter(levels, found, tokens)
            counts = level.counts
            if k + 1 < len(levels):
                above = levels[k + 1]
                after = np.bincount(above.shorter(level), minlength=len(counts))
                opening = level.contexts % level.width == start if k else np.zeros(1, bool)
                counts = np.where(opening[level.owners], counts, after)
            given = discounts(counts)[np.minimum(counts, 3)]  # (g,)
            totals = level.sum_by_context(counts)
            left = level.sum_by_context(given) / totals
            found.append(Weights((counts - given) / totals[level.owners] + left[level.owners] * lower, left))
        return found


def _shorter(levels: list[Level], found: list[Weights], tokens: int) -> Array:
    """P(w | shorter c) of each gram of the next level to be found."""
    k = len(found)
    if k == 0:
        return np.full(len(levels[0].grams), 1 / tokens)
    return found[-1].probabilities[levels[k].shorter(levels[k - 1])]


def discounts(counts: Array) -> Array:
    """(4,) what a count of 0, 1, 2, and 3 or more gives up, by how many grams have counts 1 to 4."""
    n = [int((counts == r).sum()) for r in range(1, 5)]
    if not all(n[:3]):
        return FALLBACK
    y = n[0] / (n[0] + 2 * n[1])
    found = np.array([0.0, *(r - (r + 1) * y * n[r] / n[r - 1] for r in (1, 2, 3))])
    return found if (found[1:] > 0).all() else FALLBACK


FALLBACK = np.array([0.0, 0.5, 1.0, 1.5])  # for tables too dense, or too small, to have enough rare grams

LEAST = 0.01  # that each count gives up: else a token never seen after a context would be impossible


def good_turing(counts: Array) -> Array:
    """counts (g,) -> r* of each, as Gale and Sampson estimate it.

    Turing's own ratio for small r, where N(r) is large; from the first r where it no longer differs from a straight
    line through log N(r) by more than 1.65 standard deviations, that line.
    """
    r, n = np.unique(counts, return_counts=True)
    line = r * (1 + 1 / r) ** (_slope(r, n) + 1)
    adjusted = line.copy()
    size = dict(zip(r.tolist(), n.tolist(), strict=True))
    for i, here in enumerate(r.tolist()):
        above = size.get(here + 1, 0)
        turing = (here + 1) * above / n[i]
        spread = (here + 1) / n[i] * math.sqrt(above * (1 + above / n[i]))
        if not above or abs(turing - line[i]) <= 1.65 * spread:
            break
        adjusted[i] = turing
    return np.clip(adjusted, LEAST, r - LEAST)[np.searchsorted(r, counts)]


def _slope(r: Array, n: Array) -> float:
    """Of the line through (log r, log Z), Z being N(r) spread over the gap to the neighbors that occur."""
    if len(r) < 2:
        return -2.0
    before = np.concatenate([[0], r[:-1]])
    after = np.concatenate([r[1:], [2 * r[-1] - r[-2]]])
    return float(np.polyfit(np.log(r), np.log(2 * n / (after - before)), 1)[0])
