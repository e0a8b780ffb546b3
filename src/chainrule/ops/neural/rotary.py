"""Rotary positions: each pair of features is rotated by an angle proportional to the position.

    (a, b) -> (a cos φ - b sin φ,  b cos φ + a sin φ),   φ = t θ_i,   θ_i = base^(-2i/D) unless given

The score of a query at t and a key at s then depends only on t - s.
Derivation: docs/derivations/rotary.md
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import Input, constant, contiguous, settled
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape
from chainrule.errors import ShapeError
from chainrule.ops._util import examples, normal, shapes
from chainrule.ops.arrays.elementwise import add, mul, sub
from chainrule.ops.arrays.shape import concat, reshape, transpose


def forward(
    x: Array, *, positions: Any, base: float = 10000.0, frequency: Any = None, interleaved: bool = False
) -> Result:
    """Rotate the pairs of x (..., T, D) by position: queries and keys, before attention.

    `positions` is (T,), or broadcasts to x.shape[:-1]. Pair i is (x_i, x_{i + D/2}), as in Llama, or with
    `interleaved` (x_{2i}, x_{2i+1}), as in the original paper. It rotates by `frequency[i]` radians per position,
    base^(-2i/D) unless given.
    """
    cos, sin = _table(*_angles(x, positions=positions, base=base, frequency=frequency))
    return _rotate(x, cos, sin, interleaved), (cos, sin, interleaved)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    cos, sin, interleaved = saved
    return (_rotate(dy, cos, -sin, interleaved),)  # transpose = rotation by -φ    [RO.3]


def _angles(x: Any, *, positions: Any, base: float = 10000.0, frequency: Any = None) -> tuple[Any, ...]:
    """Positions and frequencies, checked, as arguments of `_table`."""
    shape = x.shape
    if len(shape) < 2 or shape[-1] % 2:
        raise ShapeError(f"rotary: x has shape {shape} (must be (..., time, size) with an even size)")
    t = np.asarray(positions, dtype=np.float64)
    pairs = zip(reversed(t.shape), reversed(shape[:-1]), strict=False)
    if t.ndim > len(shape) - 1 or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            f"rotary: positions have shape {t.shape}, x has {shape} (must broadcast to {shape[:-1]})"
        )
    D = shape[-1]
    given = base ** (-np.arange(0, D, 2) / D) if frequency is None else frequency  # [RO.1]
    theta = np.asarray(given, dtype=np.float64)
    if theta.shape != (D // 2,):
        raise ShapeError(f"rotary: frequency has shape {theta.shape}, x has {shape} (must be ({D // 2},))")
    return t.tobytes(), t.shape, theta.tobytes(), x.dtype


@lru_cache(maxsize=8)  # every layer and step needs the same one
def _table(t: bytes, shape: Shape, theta: bytes, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """cos φ and sin φ, each (..., T, D/2); φ in float64, since far positions have large angles."""
    angle = np.frombuffer(t).reshape(*shape, 1) * np.frombuffer(theta)
    cos, sin = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    cos.flags.writeable = sin.flags.writeable = False
    return cos, sin


@lru_cache(maxsize=8)
def _abstract_table(t: bytes, shape: Shape, theta: bytes, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    full = (*shape, len(theta) // 8)
    return abstract(full, dtype), abstract(full, dtype)


def _pairs(x: Any, interleaved: bool) -> tuple[Any, Any]:
    """First and second partner of every pair, each (..., T, D/2)."""
    half = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])


def _rotate(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    a, b = _pairs(x, interleaved)
    y = np.empty_like(x)
    first, second = _pairs(y, interleaved)
    np.subtract(a * cos, b * sin, out=first)  # [RO.2]
    np.add(b * cos, a * sin, out=second)
    return y


def native_forward(x: Array, *, interleaved: bool = False, **angles: Any) -> Result:
    ids = _by_text(x, angles["positions"])
    if ids is None:
        cos, sin = (constant(each, angles["positions"]) for each in _table(*_angles(x, **angles)))
    else:
        cos, sin = _chosen(x, ids, **angles)
    return _turn(x, cos, sin, 1.0, interleaved), (cos, sin, interleaved)


def _by_text(x: Array, positions: Any) -> Array | None:
    """Positions (B, 1, T) of the tokens of texts in B rows, from 0 to T - 1, as ids; None if they are others."""
    if x.ndim != 4 or not isinstance(positions, np.ndarray | Input):
        return None
    if positions.shape != (x.shape[0], 1, x.shape[2]) or positions.dtype.kind not in "iu":
        return None
    ids = settled(positions)
    inside = ids.size and ids.min() >= 0 and ids.max() < x.shape[2]
    return ids.reshape(-1).astype(np.int64, copy=False) if inside else None


def _chosen(x: Array, ids: Array, **angles: Any) -> tuple[Array, Array]:
    """cos φ and sin φ of each token, (B, 1, T, D/2): rows of the table of positions 0 to T - 1."""
    B, T, D = x.shape[0], *x.shape[2:]
    full = _table(*_angles(x, **angles | {"positions": np.arange(T)}))  # (T, D/2)
    found = native.empty((2, B, 1, T, D // 2))
    for each, table in zip(found, full, strict=True):
        native.kernels().gather_rows(each.reshape(-1, D // 2), constant(table), ids)
    return found[0], found[1]


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    cos, sin, interleaved = saved
    return (_turn(dy, cos, sin, -1.0, interleaved),)


def _turn(x: Array, cos: Array, sin: Array, sign: float, interleaved: bool) -> Array:
    T, D = x.shape[-2:]
    if x.strides[-1] != x.itemsize:
        x = contiguous(x)
    by_text = x.ndim == 4 and cos.shape[:-1] == (x.shape[0], 1, T)
    if cos.size != T * D // 2 and not by_text:  # others are expanded
        full = (*x.shape[:-1], D // 2)
        cos, sin = (np.ascontiguousarray(np.broadcast_to(table, full)) for table in (cos, sin))
    y = native.empty(x.shape)
    native.kernels().rotary(y, x, cos, sin, sign, interleaved)
    return y


def composed(x: Any, *, interleaved: bool = False, **angles: Any) -> Any:
    """The composition from slices, products and a concatenation."""
    cos, sin = _table(*_angles(x, **angles))
    a, b = _pairs(x, interleaved)
    y = concat(sub(mul(a, cos), mul(b, sin)), add(mul(b, cos), mul(a, sin)), axis=-1)  # (..., T, D), halves
    if not interleaved:
        return y
    *lead, D = x.shape
    axes = tuple(range(len(lead)))
    y = reshape(y, shape=(*lead, 2, D // 2))
    y = transpose(y, axes=(*axes, len(lead) + 1, len(lead)))  # (..., T, D/2, 2)
    return reshape(y, shape=x.shape)


example = examples(
    shapes((2, 3, 5, 8), positions=np.arange(5)),
    shapes((7, 2), positions=np.arange(100, 107), base=100.0),
    shapes((2, 3, 5, 6), positions=np.arange(5), interleaved=True),
    shapes((2, 5, 6), positions=np.arange(5), frequency=[1.0, 0.0, -0.3]),
    shapes((2, 3, 1, 4), positions=np.array([[[4]], [[9]]])),  # (B, 1, 1)
    shapes((2, 2, 3, 4, 6), positions=np.array([[[0, 1, 2, 3]], [[4, 6, 8, 9]]])),  # of the second axis
    shapes((2, 3, 66), positions=np.arange(3)),  # whole vectors and a remainder
    # Heads split.
    lambda rng: Example((normal(rng, 2, 3, 4, 34).transpose(0, 2, 1, 3),), {"positions": np.arange(3)}),
)


def abstract_forward(x: Array, *, interleaved: bool = False, **angles: Any) -> Result:
    cos, sin = _abstract_table(*_angles(x, **angles))
    return abstract(x.shape, x.dtype), (cos, sin, interleaved)


rotary = Op(
    "rotary", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), strided=True, abstract=abstract_forward,
)  # fmt: skip
