"""Softmax and log-softmax along one axis.        Derivation: docs/derivations/softmax.md

y_i = e^(x_i - m) / Σ_j e^(x_j - m),   m = max_j x_j
log y_i = x_i - m - log Σ_j e^(x_j - m)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd import Example, Op
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import ConfigError
from chainrule.ops._util import examples, native_map, shapes
from chainrule.ops.arrays.elementwise import sub
from chainrule.ops.arrays.reduce import logsumexp


def softmax_forward(x: Array, *, axis: int = -1, clip: tuple[float, float] | None = None) -> Result:
    """Positive numbers in the order of x that sum to 1 along `axis`: e^x_i / Σ_j e^x_j.

    x (..., V) -> p (..., V), along the last axis or `axis`

    An entry of -inf gives exactly 0; a row of only -inf gives zeros. `clip=(-50, 50)` first clips the finite
    entries to that interval, an old way to avoid overflow that, unlike subtracting the maximum, changes the result.
    """
    inside = None
    if clip is not None:
        x, inside = _clip(x, *clip)
    y, _ = minus_max(x, axis)
    np.exp(y, out=y)  # [SM.2]
    y /= one_if_empty(y.sum(axis=axis, keepdims=True))  # [SM.2]
    return y, (y, axis, inside)


def softmax_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    y, axis, inside = saved
    dx = dy * y  # [SM.4]
    dx -= y * dx.sum(axis=axis, keepdims=True)  # y (dy - Σ dy y), without the Jacobian               [SM.4]
    if inside is not None:
        dx *= inside  # forward was: y = softmax(clip(x))                                             [SM.5]
    return (dx,)


_rows_forward, _rows_backward = native_map("softmax_forward", "softmax_backward", saves_output=True)


def softmax_native_forward(x: Array, *, axis: int = -1, clip: tuple[float, float] | None = None) -> Result:
    if clip is not None or not _along_rows(x, axis):
        return softmax_forward(x, axis=axis, clip=clip)
    y, _ = _rows_forward(x)
    return y, (y, axis, None)


def softmax_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    y, axis, inside = saved
    plain = inside is None and _along_rows(y, axis)
    return (_rows_backward if plain else softmax_backward)(dy, saved, needs)


_vectors = [shapes((3, C)) for C in (16, 33, 257)]  # whole vectors of the native kernels, and a remainder

softmax_example = examples(
    shapes((3, 4)), shapes((2, 3, 5), axis=1), shapes((7, 1)),
    lambda rng: Example((np.array([[0.5, -3.0, 2.5], [1.5, 0.0, -0.7]]),), {"clip": (-1.0, 1.0)}), *_vectors
)  # fmt: skip

softmax = Op(
    "softmax", softmax_forward, softmax_backward, softmax_example,
    native=(softmax_native_forward, softmax_native_backward),
)  # fmt: skip


def log_softmax_forward(x: Array, *, axis: int = -1) -> Result:
    """log(softmax(x)) computed directly: finite where softmax would round to 0; -inf stays -inf

    x (..., V) -> y (..., V), along the last axis or `axis`
    """
    y, _ = minus_max(x, axis)
    y -= np.log(one_if_empty(np.exp(y).sum(axis=axis, keepdims=True)))  # [SM.6]
    return y, (y, axis)


def log_softmax_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    y, axis = saved
    dx = np.exp(y)  # softmax(x)                                                                      [SM.7]
    dx *= -dy.sum(axis=axis, keepdims=True)
    dx += dy  # forward was: y = x - logsumexp(x)                                                     [SM.7]
    return (dx,)


_log_forward, _log_backward = native_map("log_softmax_forward", "log_softmax_backward", saves_output=True)


def log_softmax_native_forward(x: Array, *, axis: int = -1) -> Result:
    if not _along_rows(x, axis):
        return log_softmax_forward(x, axis=axis)
    y, _ = _log_forward(x)
    return y, (y, axis)


def log_softmax_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return (_log_backward if _along_rows(*saved) else log_softmax_backward)(dy, saved, needs)


log_softmax = Op(
    "log_softmax", log_softmax_forward, log_softmax_backward,
    examples(shapes((3, 4)), shapes((2, 3, 5), axis=0), shapes((7, 1)), *_vectors),
    composed=lambda x, *, axis=-1: sub(x, logsumexp(x, axis=axis, keepdims=True)),
    native=(log_softmax_native_forward, log_softmax_native_backward),
)  # fmt: skip


def softmax_jacobian(p: Any) -> Array:
    """∂p_i/∂x_j = p_i (δ_ij - p_j), that is diag(p) - p pᵀ, of a softmax output p: (..., V) -> (..., V, V).

    For inspection: backward never builds it.

    >>> import chainrule as cr
    >>> cr.ops.softmax_jacobian([0.5, 0.5])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    p = np.asarray(p)
    J: Array = p[..., :, None] * (np.eye(p.shape[-1], dtype=p.dtype) - p[..., None, :])  # (..., V, V)  [SM.3]
    return J


def _along_rows(x: Array, axis: int) -> bool:
    """True if the kernels apply: along the last axis, which must not be empty."""
    return x.ndim > 0 and x.shape[-1] > 0 and axis in (-1, x.ndim - 1)


def minus_max(x: Array, axis: int) -> tuple[Array, Array]:
    """x minus its maximum along `axis`, so that exp cannot overflow; and the maximum."""
    peak = x.max(axis=axis, keepdims=True)
    peak[peak == -np.inf] = 0  # a row of -inf stays a row of -inf
    return x - peak, peak  # [SM.1]


def one_if_empty(total: Array) -> Array:
    """Replace the sum 0 of a row of -inf by 1, in place, to divide by it."""
    total[total == 0] = 1
    return total


def _clip(x: Array, low: float, high: float) -> tuple[Array, Array]:
    """x clipped to [low, high], except -inf, which is a mask; and where x was inside."""
    if not low < high:
        raise ConfigError(f"softmax: clip is ({low}, {high}) (the first must be below the second)")
    inside = (x >= low) & (x <= high)
    return np.clip(x, low, high, out=x.copy(), where=x != -np.inf), inside
