"""Attention with a bias for each distance.        Derivation: docs/derivations/relative_attention.md

    Z_ts = s q_t · k_s + r_(s - p_t) + M_ts,   A = softmax(Z),   o = A v        (Raffel et al. 2020)

r is a vector for each head, p_t the position of query t among the keys. It does not depend on the number of tokens: a
text read at once and one read token by token, with a cache of keys, have the same r. Saved is what attention saves,
and r.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.recording import Input, assign, contiguous, settled, zeros
from chainrule.autograd.types import Array, Grads, Needs, Saved, Shape, Work
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import normal
from chainrule.ops.arrays.elementwise import add
from chainrule.ops.arrays.indexing import getitem
from chainrule.ops.neural.attention import abstract_forward as attention_abstract
from chainrule.ops.neural.attention import (
    averaged,
    checked,
    gradients,
    native_attended,
    native_empty,
    native_gradients,
    scaled_scores,
)
from chainrule.ops.neural.attention import cost as attention_cost
from chainrule.ops.neural.attention import forward as attention_forward
from chainrule.random import key as random_key


def forward(
    q: Array,
    k: Array,
    v: Array,
    bias: Array,
    *,
    causal: bool = False,
    mask: Any = None,
    scale: float | None = None,
    dropout: float = 0.0,
    key: tuple[int, ...] | None = None,
) -> tuple[Array, Saved]:
    """Attention whose scores also depend on how far a key is from the query.

    q (..., H, T, D), k (..., Hk, S, D), v (..., Hk, S, Dv), bias (H, 2N - 1) -> (..., H, T, Dv). Entry N - 1 + d of
    the bias is for a key d positions after the query; N is at least S and T. The queries stand at the last T of the S
    positions. `mask` is boolean; the other options are those of `attention`.
    """
    options: dict[str, Any] = {"causal": causal, "scale": scale, "dropout": dropout, "key": key}
    mask = _checked(q, k, bias, mask)
    mask = None if mask is None else settled(mask)
    o, saved = attention_forward(q, k, v, mask=pair_bias(bias, mask, q.shape[-2], k.shape[-2]), **options)
    # What was added to the scores is computed again in backward.
    return o, (*saved[:6], mask, *saved[7:], bias)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    dq, dk, dv, dZ = gradients(dy, _as_attention(saved), needs)
    return dq, dk, dv, None if dZ is None or not needs[3] else _by_distance(dZ, saved[-1].shape)


def native_forward(
    q: Array, k: Array, v: Array, bias: Array, *, mask: Any = None, **options: Any
) -> tuple[Array, Saved]:
    constants = checked(q, k, v, mask=_checked(q, k, bias, mask), **options)
    bias = contiguous(bias)
    o, saved = native_attended(q, k, v, constants, _by_pair(bias, q.shape[-2], k.shape[-2]))
    return o, (*saved, bias)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    *rest, bias = saved
    T, S = rest[0].shape[-2], rest[1].shape[-2]
    grads = native_empty(saved, needs[:3])
    along = native.empty((len(bias), T + S - 1)) if needs[3] and T and S else None
    native_gradients(grads, dy, tuple(rest), _by_pair(bias, T, S), along)
    dbias = zeros(bias.shape, bias.dtype) if needs[3] else None
    if dbias is not None and along is not None:
        first = (bias.shape[1] + 1) // 2 - S
        assign(dbias[:, first : first + T + S - 1], along)  # [RA.3]
    return *grads, dbias


def _as_attention(saved: Saved) -> Saved:
    """What `attention` saves if it is given the bias of each pair as a mask."""
    *rest, bias = saved
    q, k, _, _, _, _, mask = rest[:7]
    return *rest[:6], pair_bias(bias, mask, q.shape[-2], k.shape[-2]), *rest[7:]


def _checked(q: Array, k: Array, bias: Array, mask: Any) -> Any:
    if q.ndim < 3 or bias.ndim != 2 or len(bias) != q.shape[-3] or bias.shape[1] % 2 == 0:
        raise ShapeError(
            f"relative_attention: q {q.shape}, bias {bias.shape} (must be (..., H, T, D) and (H, 2N - 1))"
        )
    longest, N = max(q.shape[-2], k.shape[-2]), (bias.shape[1] + 1) // 2
    if longest > N:
        raise ShapeError(f"relative_attention: {longest} positions, the bias is for {N} (must not be more)")
    if mask is None:
        return None
    mask = mask if isinstance(mask, Input) else np.asarray(mask)
    if mask.dtype != bool:
        raise ConfigError(f"relative_attention: mask has dtype {mask.dtype} (must be bool)")
    return mask


def pair_bias(bias: Array, mask: Array | None, T: int, S: int) -> Array:
    """What is added to the scores: r_(s - p_t), (H, T, S), and -inf where the mask hides a key."""
    pairs = _by_pair(bias, T, S)
    found = np.array(pairs) if mask is None else np.where(mask, pairs, bias.dtype.type(-np.inf))
    found.flags.writeable = False
    return found


def _by_pair(bias: Array, T: int, S: int) -> Array:
    """(H, 2N - 1) -> (H, T, S), a view: the window of query t begins one entry before that of query t - 1"""
    if T == 0:
        return np.empty((len(bias), 0, S), bias.dtype)
    first = (bias.shape[1] + 1) // 2 - S  # where the window of the last query begins    [RA.2]
    windows = sliding_window_view(bias[:, first : first + S + T - 1], S, axis=-1)
    return windows[:, ::-1]


def _by_distance(dZ: Array, shape: Shape) -> Array:
    """dZ (..., H, T, S) -> the gradient of the bias (H, 2N - 1): sums over the batch and along diagonals"""
    T, S = dZ.shape[-2:]
    rows = dZ.sum(axis=tuple(range(dZ.ndim - 3)))  # (H, T, S)
    dbias = np.zeros(shape, dZ.dtype)
    first = (shape[1] + 1) // 2 - S
    for t in range(T):  # forward was: Z_ts = ... + r_(s - p_t)    [RA.3]
        start = first + T - 1 - t
        dbias[:, start : start + S] += rows[:, t]
    return dbias


def composed(q: Any, k: Any, v: Any, bias: Any, **options: Any) -> Any:
    """The composition from matmul, softmax and a lookup of each pair's distance."""
    causal, mask, scale, dropout, key = checked(q, k, v, **options)
    T, S = q.shape[-2], k.shape[-2]
    distances = np.arange(S) - (np.arange(T)[:, None] + S - T)  # (T, S)
    places = distances + (bias.shape[1] + 1) // 2 - 1
    scores = add(scaled_scores(q, k, scale), getitem(bias, index=(slice(None), places)))  # (..., H, T, S)
    return averaged(scores, v, causal, mask, dropout, key)


def example(rng: np.random.Generator) -> Iterator[Example]:
    def inputs(lead: Shape, T: int, S: int, D: int, N: int, kv: Shape | None = None) -> tuple[Array, ...]:
        kv = lead if kv is None else kv
        q, k, v = normal(rng, *lead, T, D), normal(rng, *kv, S, D), normal(rng, *kv, S, D)
        return q, k, v, normal(rng, lead[-1], 2 * N - 1)

    yield Example(inputs((2, 3), 5, 5, 4, 5))
    yield Example(inputs((3, 2), 4, 6, 3, 9), {"causal": True, "scale": 1.0})
    yield Example(inputs((1,), 1, 1, 1, 1))
    yield Example(inputs((2, 4), 3, 5, 3, 7, kv=(2, 2)))  # grouped heads
    padding = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], dtype=bool)[:, None, None, :]  # (B, 1, 1, S)
    yield Example(inputs((2, 2), 4, 4, 3, 6), {"mask": padding})
    dropped = {"dropout": 0.3, "key": random_key("dropout", 1, seed=7)}
    yield Example(inputs((2, 2), 7, 7, 3, 8), {"causal": True, **dropped})
    yield Example(inputs((1, 2), 33, 65, 16, 70))  # several tiles of the native kernel


def abstract_forward(
    q: Array, k: Array, v: Array, bias: Array, *, mask: Any = None, **options: Any
) -> tuple[Array, Saved]:
    mask = _checked(q, k, bias, mask)
    o, saved = attention_abstract(q, k, v, **options)
    return o, (*saved[:6], mask, *saved[7:], bias)


def cost(needs: Needs, q: Array, k: Array, v: Array, bias: Array, **options: Any) -> Work:
    return attention_cost(needs[:3], q, k, v, **options)


relative_attention = Op(
    "relative_attention", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), strided=True, abstract=abstract_forward,
    cost=cost,
)  # fmt: skip
