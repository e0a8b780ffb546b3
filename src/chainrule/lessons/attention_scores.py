"""Attention scores: why they are divided by √d, and how their number grows with the length."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.native import get_threads, set_threads
from chainrule.random import generator


@dataclass(frozen=True)
class ScoreVariance:
    """Dot products of random queries and keys of size d, plain and divided by √d."""

    d: int
    plain: float  # variance of q·k: d
    scaled: float  # variance of q·k / √d: 1
    plain_peak: float  # mean of the largest attention weight over `keys` keys
    scaled_peak: float
    plain_slope: float  # mean L1 norm of the softmax Jacobian: how much of a gradient reaches the scores
    scaled_slope: float


def score_variance(d: int, draws: int = 10_000, keys: int = 8, seed: int = 0) -> ScoreVariance:
    """Why scores are divided by √d: without it softmax takes all from one key, and stays there."""
    if min(d, draws, keys) < 1:
        raise ConfigError(f"score_variance: d {d}, draws {draws}, keys {keys} (must be at least 1)")
    scores = random_scores(d, draws, keys, seed)  # (draws, keys)
    scaled = scores / np.sqrt(d)
    weights = [ops.softmax(s) for s in (scores, scaled)]
    peaks = [float(p.max(axis=-1).mean()) for p in weights]
    slopes = [float(2 * (1 - (p * p).sum(axis=-1)).mean()) for p in weights]  # Σ_ij |p_i (δ_ij - p_j)|
    return ScoreVariance(d, float(scores.var()), float(scaled.var()), *peaks, *slopes)


def random_scores(d: int, draws: int, keys: int, seed: int = 0) -> Array:
    """q·k of standard normal vectors: (draws, keys), each row of one query"""
    rng = generator("score variance", d, seed=seed)
    q, k = rng.normal(size=(draws, d)), rng.normal(size=(draws, keys, d))
    return np.einsum("nd,nkd->nk", q, k)


class Timing(NamedTuple):
    """Attention over one sequence of n tokens."""

    n: int
    scores: int  # per head: n²
    seconds: float  # of the fastest forward pass, on one thread, by its own clock


def growth(
    lengths: tuple[int, ...], *, heads: int = 4, size: int = 64, patience: float = 0.5
) -> list[Timing]:
    """Time attention without a mask at each length, at least `patience` seconds each: twice n, four times the time.

    >>> [timing.scores for timing in growth((16, 32), patience=0)]
    [256, 1024]
    """
    threads = get_threads()
    set_threads(1)
    try:
        return [_time(n, heads, size, patience) for n in lengths]
    finally:
        set_threads(threads)


def _time(n: int, heads: int, size: int, patience: float) -> Timing:
    q, k, v = generator("attention growth", n).normal(size=(3, 1, heads, n, size)).astype(np.float32)
    times: list[float] = []
    while len(times) < 3 or sum(times) < patience:
        began = time.thread_time()
        ops.attention(q, k, v)
        times.append(time.thread_time() - began)
    return Timing(n, int(ops.attention_weights(q[0, 0], k[0, 0]).size), min(times))
