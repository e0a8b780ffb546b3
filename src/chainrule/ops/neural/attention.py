"""Scaled dot-product attention, fused.        Derivation: docs/derivations/attention.md

    Z = s q kᵀ + M,   A = softmax(Z),   o = A v

Saved are q, k, v, o and L, the log-sum-exp of each row of Z, but not the T×S matrix A: backward recomputes it as
exp(Z - L). The native kernel, which never stores A, saves the same arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op, Tensor
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import contiguous, settled
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape, Work, is_float
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import normal
from chainrule.ops.arrays.elementwise import add, mul
from chainrule.ops.arrays.matmul import matmul
from chainrule.ops.arrays.shape import broadcast_to, reshape, transpose
from chainrule.ops.neural.dropout import dropout as dropout_op
from chainrule.ops.neural.dropout import keep_mask, threshold
from chainrule.ops.neural.softmax import softmax
from chainrule.random import key as random_key

Key: TypeAlias = tuple[int, ...] | None  # of a random stream, as chainrule.random.key returns it
Constants: TypeAlias = tuple[bool, Array | None, float, float, Key]  # causal, mask, scale, dropout, key


def forward(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    mask: Any = None,
    scale: float | None = None,
    dropout: float = 0.0,
    key: Key = None,
) -> Result:
    """For each query the mean of the values, weighted by how well their keys match: softmax(s q kᵀ) v.

    q (..., H, T, D), k (..., Hk, S, D), v (..., Hk, S, Dv) -> (..., H, T, Dv). Hk divides H: neighboring
    query heads share a key head. Matrices without heads work too. `scale` is 1/√D unless given.

    `mask` broadcasts to (..., H, T, S): boolean, True where the query may attend, or float, added to the
    scores. `causal` lets query t see the keys up to t + S - T: the last query sees all of them. A query without
    any key gives zeros. `dropout` is the rate at which weights are dropped, at places chosen by `key`.
    """
    causal, mask, scale, dropout, key = constants = checked(q, k, v, causal, mask, scale, dropout, key)
    weights, total, lse = _softmax(_scores(q, k, causal, mask, scale))
    if dropout:
        weights *= _kept(q, k, dropout, key)
        total *= 1 - dropout
    o = weights @ v  # (..., Hk, G·T, Dv)
    o /= total  # the (T, Dv) outputs instead of the (T, S) weights    [AT.3]
    o = o.reshape(*q.shape[:-1], v.shape[-1])  # (..., H, T, Dv)
    return o, (q, k, v, o, lse.reshape(q.shape[:-1]), *constants)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return gradients(dy, saved, needs)[:3]


def gradients(dy: Array, saved: Saved, needs: Needs) -> Grads:
    """dq, dk, dv, and dZ (..., H, T, S), the gradient of what is added to the scores, if needs[3] asks for it."""
    q, k, v, o, lse, causal, mask, scale, dropout, key = saved
    dq = dk = dv = dZ = None
    A = _scores(q, k, causal, mask, scale)  # (..., Hk, G·T, S)
    A -= _fold(lse[..., None], k)
    np.exp(A, out=A)  # [AT.5]
    keep = _kept(q, k, dropout, key) / q.dtype.type(1 - dropout) if dropout else None
    do = _fold(dy, k)  # (..., Hk, G·T, Dv)
    if needs[2]:
        used = A if keep is None else A * keep
        dv = used.swapaxes(-1, -2) @ do  # forward was: o = A v; sums over the group    [AT.6]
    if needs[0] or needs[1] or any(needs[3:]):
        dZ = do @ v.swapaxes(-1, -2)  # dA so far    [AT.7]
        if keep is not None:
            dZ *= keep  # [AT.13]
        dZ -= _fold((dy * o).sum(axis=-1, keepdims=True), k)  # Σ_j dA_ij A_ij = do_i · o_i    [AT.9]
        dZ *= A  # [AT.8]
        if needs[0]:
            dq = dZ @ k  # forward was: Z = s q kᵀ    [AT.10]
            dq *= scale
            dq = dq.reshape(q.shape)  # (..., H, T, D)
        if needs[1]:
            dk = dZ.swapaxes(-1, -2) @ _fold(q, k)  # [AT.11]
            dk *= scale
        dZ = dZ.reshape(_scores_shape(q, k))
    return dq, dk, dv, dZ


def native_forward(q: Array, k: Array, v: Array, **options: Any) -> Result:
    return native_attended(q, k, v, checked(q, k, v, **options))


def native_attended(q: Array, k: Array, v: Array, constants: Constants, bias: Array | None = None) -> Result:
    """With checked constants; a bias (..., H, T, S) is added to the scores, beside a boolean mask."""
    o, lse = _empty((*q.shape[:-1], v.shape[-1])), native.empty(q.shape[:-1])
    native.kernels().attention_forward(_four(o), lse, *_native_arguments(q, k, v, *constants, bias=bias))
    return o, (q, k, v, o, lse, *constants)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    grads = native_empty(saved, needs)
    native_gradients(grads, dy, saved)
    return grads


def native_empty(saved: Saved, needs: Needs) -> Grads:
    """Arrays for dq, dk and dv; None where a gradient is not needed."""
    return tuple([_empty(x.shape) if need else None for x, need in zip(saved[:3], needs, strict=True)])


def native_gradients(
    grads: Grads, dy: Array, saved: Saved, bias: Array | None = None, diagonals: Array | None = None
) -> None:
    """Fill the arrays (dq, dk, dv), and `diagonals` (H, T + S - 1) with the sums of dZ along diagonals."""
    q, k, v, o, lse, *constants = saved
    dq, dk, dv = [None if grad is None else _four(grad) for grad in grads]
    arguments = _native_arguments(q, k, v, *constants, bias=bias)
    native.kernels().attention_backward(dq, dk, dv, diagonals, _four(o), lse, _rows(dy), *arguments)


def _native_arguments(
    q: Array,
    k: Array,
    v: Array,
    causal: bool,
    mask: Array | None,
    scale: float,
    dropout: float,
    key: Any,
    *,
    bias: Array | None,
) -> tuple[Any, ...]:
    """The last arguments of both kernels: q, k, v, scale, causal, allowed, added, dropout, key, threshold."""
    allowed, added = (mask, bias) if mask is None or not is_float(mask) else (None, mask)
    allowed, added = (
        None
        if each is None
        else _four(np.broadcast_to(each, _scores_shape(q, k)))  # by strides of 0, no copies
        for each in (allowed, added)
    )
    drop = (dropout, key, threshold(dropout)) if dropout else (0.0, (0,) * 5, 0)
    return (_rows(q), _rows(k), _rows(v), scale, causal, allowed, added, *drop)


def _empty(shape: Shape) -> Array:
    """An array (..., H, T, n) with the memory layout (..., T, H, n), so that joining the heads is free."""
    if len(shape) < 3:
        return native.empty(shape)
    *lead, H, T, n = shape
    return native.empty((*lead, T, H, n)).swapaxes(-3, -2)


def _rows(x: Array) -> Array:
    """As (B, H, T, n) with contiguous rows."""
    return _four(x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else contiguous(x))


def _four(x: Array) -> Array:
    """As (B, H, T, n), with the leading axes merged."""
    return x if x.ndim == 4 else x.reshape(math.prod(x.shape[:-3]), *(1, *x.shape)[-3:])


def _scores_shape(q: Any, k: Any) -> Shape:
    return (*q.shape[:-1], k.shape[-2])


def _fold(x: Array, k: Array) -> Array:
    """(..., H, T, n) -> (..., Hk, G·T, n): the G query heads of one key head, one after another."""
    groups = x.shape[-3] // k.shape[-3] if x.ndim > 2 else 1
    return x.reshape(*k.shape[:-2], groups * x.shape[-2], x.shape[-1])


def _kept(q: Array, k: Array, dropout: float, key: Any) -> Array:
    """Which weights dropout keeps, (..., Hk, G·T, S); redrawn in backward instead of saved."""
    return _fold(keep_mask(_scores_shape(q, k), dropout, key), k)


def _scores(q: Array, k: Array, causal: bool, mask: Array | None, scale: float) -> Array:
    """Z = s q kᵀ + M as a new array (..., Hk, G·T, S)."""
    shape = _scores_shape(q, k)
    Z = _fold(q * scale, k) @ k.swapaxes(-1, -2)  # (..., Hk, G·T, S), scaling the smaller factor    [AT.1]
    Z = Z.reshape(shape)  # (..., H, T, S), as the mask sees it
    bias = _bias(causal, mask, shape, q.dtype)
    if bias is not None:
        Z += bias
    return _fold(Z, k)


def _softmax(Z: Array) -> tuple[Array, Array, Array]:
    """e^(Z - max) in place; its row sums (1 for a row without a key), and the log-sum-exp of Z."""
    top = Z.max(axis=-1, keepdims=True, initial=-np.inf)  # (..., Hk, G·T, 1)
    empty = top == -np.inf
    top[empty] = 0  # with the sum set to 1, L is 0 there and backward's exp(Z - L) is 0, not NaN    [AT.12]
    Z -= top
    np.exp(Z, out=Z)
    total = Z.sum(axis=-1, keepdims=True)
    total[empty] = 1
    return Z, total, top + np.log(total)  # [AT.4]


def _bias(causal: bool, mask: Array | None, shape: Shape, dtype: np.dtype[Any]) -> Array | None:
    """M: 0 (or the float mask) where attention is allowed, -inf elsewhere; None without a mask."""

    def closed(allowed: Array) -> Array:
        return np.where(allowed, 0.0, -np.inf).astype(dtype)

    bias = mask if mask is None or is_float(mask) else closed(mask)
    if causal:
        future = closed(causal_mask(*shape[-2:]))  # (T, S)
        bias = future if bias is None else bias + future
    return bias


def _as_mask(mask: Any, shape: Shape, dtype: np.dtype[Any]) -> Array | None:
    """The mask as an array of booleans or of `dtype`."""
    if mask is None:
        return None
    mask = settled(mask)
    if mask.dtype != bool and not is_float(mask):
        raise ConfigError(
            f"attention: mask has dtype {mask.dtype} (must be bool, True = may attend, or float, to be added)"
        )
    pairs = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.ndim > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(f"attention: mask has shape {mask.shape}, scores {shape} (must broadcast to it)")
    return np.asarray(mask, dtype=bool if mask.dtype == bool else dtype)


def _check(q: Array, k: Array, v: Array) -> None:
    if q.ndim < 2 or not q.ndim == k.ndim == v.ndim:
        raise ShapeError(f"attention: q has {q.ndim} axes, k {k.ndim}, v {v.ndim} (must be equal, 2 or more)")
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ShapeError(
            f"attention: q has head size {q.shape[-1]}, k has {k.shape[-1]} (must be equal, at least 1)"
        )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"attention: k has {k.shape[-2]} positions, v has {v.shape[-2]} (must be equal)")
    if not q.shape[:-3] == k.shape[:-3] == v.shape[:-3]:
        raise ShapeError(
            f"attention: q has batch {q.shape[:-3]}, k {k.shape[:-3]}, v {v.shape[:-3]} (must be equal)"
        )
    if q.ndim > 2:
        H, Hk, Hv = q.shape[-3], k.shape[-3], v.shape[-3]
        if Hk != Hv:
            raise ShapeError(f"attention: k has {Hk} heads, v has {Hv} (must be equal)")
        if Hk == 0 or H % Hk:
            raise ShapeError(f"attention: q has {H} heads, k has {Hk} (must divide)")


def checked(
    q: Array,
    k: Array,
    v: Array,
    causal: bool = False,
    mask: Any = None,
    scale: float | None = None,
    dropout: float = 0.0,
    key: Key = None,
) -> Constants:
    """The constants as they are saved: causal, mask as an array, scale as a number, dropout and key"""
    _check(q, k, v)
    if not 0 <= dropout < 1:
        raise ConfigError(f"attention: dropout is {dropout} (must be at least 0 and below 1)")
    if dropout and key is None:
        raise ConfigError(f"attention: dropout is {dropout}, key is None (needs a key: chainrule.random.key)")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    return causal, _as_mask(mask, _scores_shape(q, k), q.dtype), scale, dropout, key


def causal_mask(T: int, S: int | None = None) -> Array:
    """(T, S) booleans: query t may attend to the keys up to t + S - T; the lower triangle for S = T.

    >>> import chainrule as cr
    >>> cr.ops.causal_mask(2, 3)
    array([[ True,  True, False],
           [ True,  True,  True]])
    """
    S = T if S is None else S
    return np.tri(T, S, S - T, dtype=bool)


def attention_weights(
    q: Any, k: Any, *, causal: bool = False, mask: Any = None, scale: float | None = None
) -> Array:
    """The attention maps A = softmax(Z), (..., H, T, S), for inspection; arguments as in `attention`."""
    q, k = (x.array if isinstance(x, Tensor) else np.asarray(x) for x in (q, k))
    causal, mask, scale, *_ = checked(q, k, k, causal, mask, scale)
    A, total, _ = _softmax(_scores(q, k, causal, mask, scale))
    A /= total  # [AT.2]
    return A.reshape(_scores_shape(q, k))


def composed(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """The composition from matmul and softmax, with every matrix stored."""
    causal, mask, scale, dropout, key = checked(q, k, v, **options)
    return averaged(scaled_scores(q, k, scale), v, causal, mask, dropout, key)


def scaled_scores(q: Any, k: Any, scale: float) -> Any:
    """s q kᵀ, (..., H, T, S), composed."""
    shape = _scores_shape(q, k)
    keys = transpose(_repeat_heads(k, shape), axes=(*range(len(shape) - 2), -1, -2))  # (..., H, D, S)
    return mul(matmul(q, keys), scale)


def averaged(scores: Any, v: Any, causal: bool, mask: Any, dropout: float, key: Any) -> Any:
    """softmax(scores + M) v, (..., H, T, Dv), composed."""
    shape = scores.shape
    bias = _bias(causal, _as_mask(mask, shape, scores.dtype), shape, scores.dtype)
    weights = softmax(scores if bias is None else add(scores, bias))
    if dropout:
        weights = dropout_op(weights, p=dropout, key=key)
    return matmul(weights, _repeat_heads(v, shape))  # (..., H, T, Dv)


def _repeat_heads(x: Any, shape: Shape) -> Any:
    """(..., Hk, S, D) -> (..., H, S, D), each head repeated for the query heads that share it."""
    if len(shape) == 2 or x.shape[-3] == shape[-3]:
        return x
    *lead, Hk, S, D = x.shape
    x = reshape(x, shape=(*lead, Hk, 1, S, D))
    x = broadcast_to(x, shape=(*lead, Hk, shape[-3] // Hk, S, D))
    return reshape(x, shape=(*lead, shape[-3], S, D))


def example(rng: np.random.Generator) -> Iterator[Example]:
    def qkv(lead: Shape, T: int, S: int, D: int, Dv: int, kv: Shape | None = None) -> tuple[Array, ...]:
        kv = lead if kv is None else kv
        return normal(rng, *lead, T, D), normal(rng, *kv, S, D), normal(rng, *kv, S, Dv)

    yield Example(qkv((2, 3), 5, 5, 4, 4), {"causal": True})
    yield Example(qkv((), 3, 7, 4, 2))
    yield Example(qkv((2, 4), 3, 5, 3, 2, kv=(2, 2)), {"causal": True, "scale": 0.3})  # grouped heads
    yield Example(qkv((1, 1), 1, 1, 1, 1))
    yield Example(qkv((1, 2), 5, 3, 4, 4), {"causal": True})  # T > S: the first two queries see nothing
    padding = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], dtype=bool)[:, None, None, :]  # (B, 1, 1, S)
    yield Example(qkv((2, 2), 4, 4, 3, 3), {"causal": True, "mask": padding})
    yield Example(qkv((2, 2), 4, 6, 3, 3), {"mask": normal(rng, 2, 4, 6)})
    dropped = {"dropout": 0.3, "key": random_key("dropout", 1, seed=7)}
    yield Example(qkv((2, 4), 7, 7, 3, 3, kv=(2, 1)), {"causal": True, **dropped})
    # Several tiles of the native kernel.
    yield Example(qkv((1, 2), 33, 65, 16, 7, kv=(1, 1)), {"causal": True})
    yield Example(qkv((), 7, 257, 17, 1))


def abstract_forward(q: Array, k: Array, v: Array, **options: Any) -> Result:
    o, lse = abstract((*q.shape[:-1], v.shape[-1]), q.dtype), abstract(q.shape[:-1], q.dtype)
    return o, (q, k, v, o, lse, *checked(q, k, v, **options))


def cost(needs: Needs, q: Array, k: Array, v: Array, *, causal: bool = False, **constants: Any) -> Work:
    """Scores and average forward; dA, dv, dq, dk backward, and recomputed scores."""
    T, S = q.shape[-2], k.shape[-2]
    # Under a causal mask the last query sees all keys, each one before it one less.
    seeing = min(T, S) if causal else T
    pairs = math.prod(q.shape[:-2]) * (seeing * S - (seeing * (seeing - 1) // 2 if causal else 0))
    score, average = 2 * pairs * q.shape[-1], 2 * pairs * v.shape[-1]
    through = bool(needs[0] or needs[1])
    backward = average * (bool(needs[2]) + through) + score * (bool(needs[0]) + bool(needs[1]))
    return Work(score + average, backward, score if any(needs) else 0)


attention = Op(
    "attention", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), strided=True, abstract=abstract_forward,
    cost=cost,
)  # fmt: skip
