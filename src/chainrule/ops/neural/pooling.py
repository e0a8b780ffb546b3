"""One row for a text, of the rows of its tokens.        Derivation: docs/derivations/pooling.md

mean   y_b = Σ_t m_bt x_bt / Σ_t m_bt        m is 1 at tokens, 0 at padding
last   y_b = x_bt of the last token t
max    y_b = max_t x_bt over the tokens      in each column
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import contiguous, settled
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import normal
from chainrule.ops.arrays.elementwise import add, mul
from chainrule.ops.arrays.reduce import max, sum

KINDS = ("mean", "last", "max")


def forward(x: Array, *, mask: Any, kind: str = "mean") -> Result:
    """The mean of the rows of each text that are tokens, or (kind "last") the row of its last token, or their maximum.

    x (B, T, C), mask (B, T) True at tokens, at least one in each row -> y (B, C). For the last one, padding stands
    behind the tokens.
    """
    mask = checked(x, mask, kind)
    if kind == "max":
        y = np.where(mask[..., None], x, -np.inf).max(axis=1).astype(x.dtype)  #                    [PL.3]
        return y, (mask, kind, x, y)
    weights = _weights(mask, kind, x.dtype)[..., None]  # (B, T, 1)
    return (weights * x).sum(axis=1), (mask, kind)  # (B, C)                                       [PL.1]


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    mask, kind, *largest = saved
    if kind == "max":
        x, y = largest
        found = mask[..., None] & (x == y[:, None])  # (B, T, C); equal maxima share the gradient
        counts = found.sum(axis=1, dtype=dy.dtype)
        share = dy / np.where(counts, counts, np.nan)  # a column whose maximum is not a number has none
        lacks = np.isnan(y)[:, None] & mask[..., None]
        return (np.where(found | lacks, share[:, None], dy.dtype.type(0)),)  #                      [PL.4]
    weights = _weights(mask, kind, dy.dtype)[..., None]  # (B, T, 1)
    return (weights * dy[:, None],)  # forward was: y = Σ_t w_t x_t                                 [PL.2]


def native_forward(x: Array, *, mask: Any, kind: str = "mean") -> Result:
    mask = contiguous(checked(x, mask, kind))
    y = native.empty((x.shape[0], x.shape[2]))
    if kind == "max":
        native.kernels().pool_max_forward(y, x, mask)
        return y, (mask, kind, x, y)
    native.kernels().pool_forward(y, x, mask, kind == "last")
    return y, (mask, kind)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    mask, kind, *largest = saved
    dx = native.empty((*mask.shape, dy.shape[-1]))
    if kind == "max":
        native.kernels().pool_max_backward(dx, dy, *largest, mask)
    else:
        native.kernels().pool_backward(dx, dy, mask, kind == "last")
    return (dx,)


def checked(x: Array, mask: Any, kind: str) -> Array:
    """The mask as an array of booleans that fits."""
    if kind not in KINDS:
        raise ConfigError(f"pool: kind is {kind!r} (must be {', '.join(KINDS[:-1])} or {KINDS[-1]})")
    found = settled(mask)
    if x.ndim != 3 or found.shape != x.shape[:2]:
        raise ShapeError(f"pool: x {x.shape}, mask {found.shape} (must be (B, T, C) and (B, T))")
    if found.dtype.kind not in "biu":
        raise ConfigError(f"pool: mask has dtype {found.dtype} (must be bool, True at tokens)")
    if found.dtype != bool:
        found = found.astype(bool)
    counts = found.sum(axis=1)
    if not counts.all():
        raise ShapeError(f"pool: row {int(counts.argmin())} has no token (must have at least one)")
    behind = np.arange(found.shape[1]) >= counts[:, None]
    if kind == "last" and (found == behind).any():
        row = int((found == behind).any(axis=1).argmax())
        raise ShapeError(f"pool: row {row} has padding before a token (must have it behind the tokens)")
    return found


def _weights(mask: Array, kind: str, dtype: Any) -> Array:
    """w (B, T) with y_b = Σ_t w_bt x_bt: 1/n at each of n tokens, or 1 at the last."""
    counts = mask.sum(axis=1, keepdims=True)
    return np.asarray(mask / counts if kind == "mean" else np.arange(mask.shape[1]) == counts - 1, dtype)


def composed(x: Any, *, mask: Any, kind: str = "mean") -> Any:
    found = checked(x, mask, kind)
    if kind == "max":
        return max(add(x, np.where(found, 0.0, -np.inf).astype(x.dtype)[..., None]), axis=1)
    return sum(mul(x, _weights(found, kind, x.dtype)[..., None]), axis=1)


def example(rng: np.random.Generator) -> Iterator[Example]:
    padded = np.arange(5) < np.array([[5], [2], [1]])
    for kind in KINDS:
        yield Example((normal(rng, 3, 5, 4),), {"mask": padded, "kind": kind})
        yield Example((normal(rng, 1, 1, 1),), {"mask": np.ones((1, 1), bool), "kind": kind})
        for C in (16, 33):  # whole vectors of the native kernel, and a remainder
            yield Example((normal(rng, 3, 5, C),), {"mask": padded, "kind": kind})
    yield Example((normal(rng, 2, 3, 7),), {"mask": np.array([[False, True, True], [True, False, True]])})


def abstract_forward(x: Array, *, mask: Any, kind: str = "mean") -> Result:
    y = abstract((x.shape[0], x.shape[2]), x.dtype)
    return y, (abstract(x.shape[:2], np.bool_), kind, *((x, y) if kind == "max" else ()))


pool = Op(
    "pool", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), abstract=abstract_forward,
)  # fmt: skip
