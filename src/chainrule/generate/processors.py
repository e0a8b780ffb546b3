"""From scores to a token: small pure functions on logits (V,), in this order.

    bias                l_i + b_i                                       logit_bias
    repetition          l_i / θ if l_i > 0 else l_i θ                   i in prompt or text (Keskar et al. 2019)
    frequency, presence l_i - f count_i - p [count_i > 0]               i in the text written so far
    temperature         (l - max l) / T                                 T = 0: the likeliest, and nothing below
    top-k               the k likeliest                                 (Fan et al. 2018)
    top-p               the fewest likeliest whose P adds up to p       (Holtzman et al. 2020)
    min-p               P_i ≥ m max P                                   (Nguyen et al. 2024)
    typical             the fewest with -ln P_i nearest to H whose P adds up to t       (Meister et al. 2023)
    draw                from softmax(l)

A token that is ruled out has the score -inf; P is always that of what is left. At least one token is left. Of tokens
with equal scores the first is the likelier. Sums run in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule import native, ops
from chainrule.errors import ChainruleError
from chainrule.generate.engine.program import runs as native_runs
from chainrule.generate.sampling import SAMPLE, Sampling
from chainrule.types import Ids

Logits: TypeAlias = npt.NDArray[np.floating[Any]]
Truths: TypeAlias = npt.NDArray[np.bool_]
Tokens: TypeAlias = Sequence[int]

FIRST, FURTHER = 512, 8  # likeliest tokens to look at, and how many times more if they are not enough


def choose(
    logits: Logits, rng: np.random.Generator, sampling: Sampling, prompt: Tokens = (), written: Tokens = ()
) -> int:
    """logits (V,) of what follows `prompt` and `written` -> a token"""
    logits = process(logits, sampling, prompt, written)
    return int(logits.argmax()) if sampling.temperature == 0 else draw(logits, rng.random())


def process(logits: Logits, sampling: Sampling, prompt: Tokens = (), written: Tokens = ()) -> Logits:
    """logits (V,) -> the scores that a token is drawn from"""
    s = sampling
    if s.logit_bias:
        logits = bias(logits, s.logit_bias)
    if s.repetition_penalty != 1:
        logits = repetition(logits, [*prompt, *written], s.repetition_penalty)
    if s.frequency_penalty or s.presence_penalty:
        logits = frequency(logits, written, s.frequency_penalty, s.presence_penalty)
    check(logits)
    if s.temperature == 0:
        return logits
    logits = temperature(logits, s.temperature)
    if s.top_k is not None:
        logits = top_k(logits, s.top_k)
    if s.top_p < 1:
        logits = top_p(logits, s.top_p)
    if s.min_p > 0:
        logits = min_p(logits, s.min_p)
    if s.typical < 1:
        logits = typical(logits, s.typical)
    return logits


def check(logits: Logits) -> None:
    """Something must be left to draw, and nothing may be infinitely good."""
    best = logits.max()  # NaN if there is one
    if best == -np.inf:
        raise ChainruleError(SAMPLE, "every token is ruled out (logit_bias forbids them all)")
    if not np.isfinite(best):
        raise ChainruleError(SAMPLE, "the model's logits are not finite (its training diverged)")


# -- scores that change -------------------------------------------------------------------------------------


def bias(logits: Logits, biases: Mapping[int, float]) -> Logits:
    """l_i + b_i"""
    logits = logits.copy()
    logits[list(biases)] += np.array(list(biases.values()), logits.dtype)
    return logits


def repetition(logits: Logits, text: Tokens, penalty: float) -> Logits:
    """l_i / θ if l_i > 0 else l_i θ, once for each token that is in the text"""
    logits, seen = logits.copy(), np.unique(np.asarray(text, np.int64))
    scores = logits[seen]
    logits[seen] = np.where(scores > 0, scores / penalty, scores * penalty)
    return logits


def frequency(logits: Logits, written: Tokens, each: float, once: float) -> Logits:
    """l_i - each · count_i - once · [count_i > 0]"""
    logits = logits.copy()
    seen, counts = np.unique(np.asarray(written, np.int64), return_counts=True)
    logits[seen] -= (each * counts + once).astype(logits.dtype)
    return logits


def temperature(logits: Logits, T: float) -> Logits:
    """(l - max l) / T: a shift changes no probability, and without it a small T would overflow"""
    shifted: Logits = logits - logits.max()
    if T == 1:
        return shifted
    with np.errstate(over="ignore"):  # -inf: so unlikely that it is never drawn
        # In float64, but without an array of them, whose fresh pages would cost more than the division.
        return np.divide(shifted, T, out=shifted, dtype=np.float64, casting="same_kind")


# -- tokens that are ruled out ------------------------------------------------------------------------------


def top_k(logits: Logits, k: int) -> Logits:
    """The k likeliest"""
    if k >= len(logits):
        return logits
    return only(logits, first(logits, k, np.partition(logits, -k)[-k]))


def top_p(logits: Logits, p: float) -> Logits:
    """The fewest likeliest tokens whose probabilities add up to p"""
    return only(logits, first(logits, *likeliest(logits, p)))


def min_p(logits: Logits, p: float) -> Logits:
    """P_i ≥ p · max P, that is l_i ≥ max l + ln p"""
    return only(logits, logits >= logits.max() + np.log(p))


def typical(logits: Logits, mass: float) -> Logits:
    """The fewest tokens that have `mass` and whose surprise -ln P is nearest to the expected one, the entropy"""
    possible = np.flatnonzero(logits > -np.inf)
    scores = logits[possible]
    weights = np.exp(scores - scores.max())
    whole = total(weights)
    surprise = scores.max() + np.log(whole) - scores
    nearness = -np.abs(surprise - np.average(surprise, weights=weights)).astype(logits.dtype)
    kept = np.zeros(len(logits), bool)
    kept[possible[first(nearness, *fewest(nearness, weights, mass * whole))]] = True
    return only(logits, kept)


def first(scores: Logits, k: int, edge: float) -> Truths:
    """Mask of the k highest scores; `edge` is the lowest of them, and ties go to lower ids"""
    kept = scores > edge
    equal = np.flatnonzero(scores == edge)
    kept[equal[: k - np.count_nonzero(kept)]] = True
    return kept


def only(logits: Logits, kept: Truths) -> Logits:
    left = np.full_like(logits, -np.inf)
    np.copyto(left, logits, where=kept)
    return left


# -- the draw -----------------------------------------------------------------------------------------------


def draw(logits: Logits, u: float) -> int:
    """The token at the fraction u, from 0 to 1, of the probabilities laid end to end, the likeliest first"""
    k, score = likeliest(logits, u)
    equal = np.flatnonzero(logits == score)
    return int(equal[k - 1 - np.count_nonzero(logits > score)])


def likeliest(logits: Logits, fraction: float) -> tuple[int, float]:
    """How many of the likeliest tokens, at least one, have this fraction of the probability; the score of the last"""
    left = logits if logits.min() > -np.inf else logits[logits > -np.inf]
    if native_runs(logits.dtype):
        count, edge = native.kernels().likeliest(np.ascontiguousarray(left), fraction)
        return count, edge
    weights: Logits = ops.softmax(left)
    return fewest(left, weights, fraction * total(weights))


def fewest(scores: Logits, weights: Logits, mass: float) -> tuple[int, float]:
    """How many of the highest scores, at least one, have weights that add up to `mass`, and the last of them

    To sort the whole vocabulary would take longer than everything else, and the highest few are mostly enough.
    """
    if native_runs(scores.dtype):
        count, edge = native.kernels().fewest(np.ascontiguousarray(scores), weights, mass)
        return count, edge
    n = FIRST
    while True:
        ids = best(scores, n)
        cumulative = np.cumsum(weights[ids], dtype=np.float64)
        if cumulative[-1] >= mass or n >= len(scores):  # the sum of all may be rounded to less than the mass
            last = int(np.searchsorted(cumulative, min(mass, cumulative[-1])))
            return last + 1, scores[ids[last]]
        n *= FURTHER


def total(weights: Logits) -> float:
    return float(weights.sum(dtype=np.float64))


def best(scores: Logits, n: int) -> Ids:
    """The ids of the n highest scores, highest first; ties go to the lower id. scores (V,) -> (n,), (B, V) -> (B, n)"""
    n = min(n, scores.shape[-1])
    if scores.ndim == 2:
        if not native_runs(scores.dtype):
            return np.array([best(row, n) for row in scores])
        ids = np.empty((len(scores), n), np.int64)
        native.kernels().highest(ids, np.ascontiguousarray(scores))
        return ids
    high = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
    return high[np.argsort(-scores[high], kind="stable")][:n]
