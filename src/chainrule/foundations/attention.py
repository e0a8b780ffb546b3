"""Attention step by step: from an average of the past to weights that depend on the content.

running average   the mean of all rows so far, by a loop, as L̄ X, as softmax(W) X
attend            softmax(s(q, k)) v for any score s
self_attend       q, k and v are three views of one X
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule.errors import ShapeError
from chainrule.foundations._check import Array, matrix
from chainrule.foundations.probability import softmax

Score: TypeAlias = Callable[[Array, Array], Array]  # queries (m, d), keys (n, d) -> scores (m, n)


# -- averages of the past ------------------------------------------------------------------------------------------


def running_average(X: npt.ArrayLike) -> Array:
    """X (T, C) -> row t is the mean of the rows 0 .. t, by a loop: T² C additions.

    >>> running_average([[1.0], [3.0], [5.0]]).tolist()
    [[1.0], [2.0], [3.0]]
    """
    X = matrix(X, "running_average")
    rows = []
    for t in range(len(X)):
        total = np.zeros(X.shape[1])
        for i in range(t + 1):
            total += X[i]
        rows.append(total / (t + 1))
    return np.array(rows).reshape(X.shape)


def averaging_matrix(T: int) -> Array:
    """L̄ (T, T): ones on and below the diagonal, each row divided by its sum. L̄ X are the running averages."""
    L = np.tri(T)
    return L / L.sum(axis=1, keepdims=True)


def wei(T: int) -> Array:
    """W (T, T): 0 on and below the diagonal, -∞ above. softmax(W) = L̄: e⁰ = 1 for the past, e^-∞ = 0 for the future."""
    return np.where(np.tri(T, dtype=bool), 0.0, -np.inf)


# -- scores ----------------------------------------------------------------------------------------------------------


def dot(q: Array, k: Array) -> Array:
    """q·k: how similar the directions of query and key are. Its variance grows with their size d.

    q (..., d), k (..., d) -> (...)
    """
    return q @ k.T


def scaled_dot(q: Array, k: Array) -> Array:
    """q·k / √d, of variance 1 for random q and k of any size

    q (..., d), k (..., d) -> (...)
    """
    return q @ k.T / math.sqrt(q.shape[1])


def additive(W_q: npt.ArrayLike, W_k: npt.ArrayLike, w: npt.ArrayLike) -> Score:
    """The score w·tanh(W_q q + W_k k) of Bahdanau et al. 2014: a small network instead of a dot product

    W_q (h, d_q), W_k (h, d_k), w (h,): query and key may have different sizes.
    """
    left, right, weight = matrix(W_q, "additive"), matrix(W_k, "additive"), np.asarray(w, dtype=np.float64)

    def score(q: Array, k: Array) -> Array:
        hidden = np.tanh((q @ left.T)[:, None, :] + (k @ right.T)[None, :, :])  # (m, n, h)
        return np.asarray(hidden @ weight)

    return score


# -- attention ---------------------------------------------------------------------------------------------------------


class Attended(NamedTuple):
    """The output of attention and its weights."""

    output: Array
    weights: Array


def attend(
    q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, score: Score = scaled_dot, *, causal: bool = False
) -> Attended:
    """For each query the mean of the values, weighted by the softmax of its scores with the keys.

    q (m, d), k (n, d), v (n, d_v) -> output (m, d_v) and weights (m, n); causal adds `wei` to the scores.

    >>> attend([[0.0]], [[1.0], [2.0]], [[10.0], [20.0]]).output.tolist()      # equal scores: the mean
    [[15.0]]
    """
    q, k, v = matrix(q, "attend"), matrix(k, "attend"), matrix(v, "attend")
    if len(k) != len(v):
        raise ShapeError(f"attend: {len(k)} keys, {len(v)} values (must be equal)")
    scores = np.asarray(score(q, k), dtype=np.float64)
    if scores.shape != (len(q), len(k)):
        raise ShapeError(
            f"attend: the score gave {scores.shape} for {len(q)} queries and {len(k)} keys (must be m × n)"
        )
    if causal:
        if len(q) != len(k):
            raise ShapeError(f"attend: {len(q)} queries, {len(k)} keys (must be equal if causal)")
        scores = scores + wei(len(q))
    weights = softmax(scores)
    return Attended(weights @ v, weights)


def self_attend(
    X: npt.ArrayLike,
    W_q: npt.ArrayLike,
    W_k: npt.ArrayLike,
    W_v: npt.ArrayLike,
    score: Score = scaled_dot,
    *,
    causal: bool = False,
) -> Attended:
    """X (T, C), W_q and W_k (C, d), W_v (C, d_v): queries, keys and values of the tokens"""
    X = matrix(X, "self_attend")
    q, k, v = (X @ matrix(W, "self_attend") for W in (W_q, W_k, W_v))
    return attend(q, k, v, score, causal=causal)
