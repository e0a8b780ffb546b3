"""Cutting, joining, reshaping and filling, made of the shape ops.        Derivations: docs/derivations/shape.md"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.call import short
from chainrule.autograd.types import Array, Axis, Shape
from chainrule.errors import ShapeError
from chainrule.ops._composition import Composition, like, plain
from chainrule.ops._util import check_axis
from chainrule.ops.arrays.indexing import getitem
from chainrule.ops.arrays.shape import as_dtype, broadcast_to, cast, concat, reshape, transpose, where


@Composition
def stack(*xs: Tensor, axis: int = 0) -> Tensor:
    """x₁, x₂, ... of one shape side by side along a new `axis`; also as one list.

    k of (...) -> y (..., k, ...)
    """
    if not xs:
        raise ShapeError("stack: got no arrays (must have at least one)")
    for x in xs[1:]:
        if x.shape != xs[0].shape:
            raise ShapeError(f"stack: {xs[0].shape} and {x.shape} (must be equal)")
    at = check_axis("stack", axis, (1, *xs[0].shape))
    return concat(*(unsqueeze(x, axis=at) for x in xs), axis=at)


@Composition
def split(x: Tensor, size: int | Sequence[int], *, axis: int = 0) -> tuple[Tensor, ...]:
    """Pieces of `size` along `axis` (the last may be smaller), or of the sizes of a list, which add up.

    x (..., n, ...) -> a tuple of (..., size, ...)
    """
    at = check_axis("split", axis, x.shape)
    whole = x.shape[at]
    if isinstance(size, int):
        if size < 1:
            raise ShapeError(f"split: size is {size} (must be at least 1)")
        sizes = [min(size, whole - start) for start in range(0, whole, size)] or [0]
    else:
        sizes = list(size)
        if sum(sizes) != whole or min(sizes, default=0) < 0:
            raise ShapeError(
                f"split: sizes {short(sizes)} of axis {axis} of shape {x.shape} (must add up to {whole})"
            )
    front = (slice(None),) * at
    return tuple(getitem(x, index=(*front, slice(a, b))) for a, b in pairwise(accumulate(sizes, initial=0)))


@Composition
def chunk(x: Tensor, chunks: int, *, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size along `axis` (the last may be smaller).

    x (..., n, ...) -> a tuple of (..., ⌈n / chunks⌉, ...)
    """
    at = check_axis("chunk", axis, x.shape)
    if not isinstance(chunks, int) or chunks < 1:
        raise ShapeError(f"chunk: chunks is {short(chunks)} (must be at least 1)")
    return split(x, max(1, -(-x.shape[at] // chunks)), axis=at)


@Composition
def squeeze(x: Tensor, *, axis: Axis = None) -> Tensor:
    """Without the axes of size 1, or without those of `axis` (as in PyTorch, larger ones stay).

    x (n, 1, m) -> y (n, m)
    """
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {check_axis("squeeze", a, x.shape) for a in axes}
    return reshape(x, shape=tuple(n for i, n in enumerate(x.shape) if n != 1 or i not in gone))


@Composition
def unsqueeze(x: Tensor, *, axis: int) -> Tensor:
    """With a new axis of size 1 at `axis`.

    x (n, m) -> y (n, 1, m) at axis 1
    """
    at = check_axis("unsqueeze", axis, (1, *x.shape))
    return reshape(x, shape=(*x.shape[:at], 1, *x.shape[at:]))


@Composition
def flatten(x: Tensor, start: int = 0, end: int = -1) -> Tensor:
    """The axes from `start` to `end` as one.

    x (B, T, C) -> y (B T C,), or (B, T C) from start 1
    """
    shape = x.shape or (1,)
    first, last = check_axis("flatten", start, shape), check_axis("flatten", end, shape)
    if first > last:
        raise ShapeError(f"flatten: axes {start} to {end} of shape {x.shape} (must be in order)")
    merged = math.prod(shape[first : last + 1])
    return reshape(x, shape=(*shape[:first], merged, *shape[last + 1 :]))


@Composition
def swapaxes(x: Tensor, a: int, b: int) -> Tensor:
    """With axes `a` and `b` swapped.

    x (..., n, m) -> y (..., m, n) for the last two
    """
    order = list(range(x.ndim))
    i, j = check_axis("swapaxes", a, x.shape), check_axis("swapaxes", b, x.shape)
    order[i], order[j] = j, i
    return transpose(x, axes=tuple(order))


@Composition
def expand(x: Tensor, shape: Shape) -> Tensor:
    """Copies along the axes of size 1 and along new leading axes, up to `shape`; -1 keeps a size.

    x (...) -> y of `shape`, such as (B, 1, C) -> (B, T, C)
    """
    lead = len(shape) - x.ndim
    kept = tuple(x.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(shape))
    return broadcast_to(x, shape=kept)


@Composition
def repeat(x: Tensor, counts: Shape) -> Tensor:
    """The whole of x, `counts` times along each axis, the last counts for the last axes (`numpy.tile`).

    x (n₀, n₁) -> y (counts[0] n₀, counts[1] n₁)
    """
    if len(counts) < x.ndim or min(counts, default=0) < 0:
        raise ShapeError(
            f"repeat: counts {short(counts)} for shape {x.shape} (must be one for each axis, at least 0)"
        )
    sizes = (1,) * (len(counts) - x.ndim) + x.shape
    apart = tuple(n for size in sizes for n in (1, size))  # (1, n₀, 1, n₁, ...)
    copies = tuple(n for count, size in zip(counts, sizes, strict=True) for n in (count, size))
    merged = tuple(count * size for count, size in zip(counts, sizes, strict=True))
    return reshape(broadcast_to(reshape(x, shape=apart), shape=copies), shape=merged)


@Composition
def pad(x: Tensor, widths: Sequence[int] | Sequence[tuple[int, int]], *, value: float = 0.0) -> Tensor:
    """`value` before and after x.

    Widths are (left, right) of the last axis, then of the one before it, and so on, as in PyTorch; or one pair per axis
    from the first on, as in NumPy: `pad(x, (1, 2))`, `pad(x, ((0, 0), (1, 2)))`.
    """
    fits = x.dtype.kind == "f" or float(value).is_integer()  # beside integers 0.5 is not 0
    y, kind = x, x.dtype if fits else np.float32
    for axis, (before, after) in enumerate(_pairs(x.shape, widths)):
        sides = [np.full((*y.shape[:axis], n, *y.shape[axis + 1 :]), value, kind) for n in (before, after)]
        if before or after:
            y = concat(sides[0], y, sides[1], axis=axis)
    return y


def _pairs(shape: Shape, widths: Sequence[int] | Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(before, after) of every axis."""
    flat = np.asarray(widths)
    if flat.dtype.kind not in "iu" or flat.size % 2 or flat.size > 2 * len(shape) or flat.min(initial=0) < 0:
        rule = "must be pairs of sizes, at most one per axis"
        raise ShapeError(f"pad: widths {short(widths)} for shape {shape} ({rule})")
    pairs = [(int(a), int(b)) for a, b in flat.reshape(-1, 2)]
    if flat.ndim == 2 and len(pairs) != len(shape):
        raise ShapeError(f"pad: {len(pairs)} pairs for shape {shape} (must be one per axis)")
    missing = [(0, 0)] * (len(shape) - len(pairs))
    return missing + (pairs if flat.ndim == 2 else pairs[::-1])


@Composition
def masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor:
    """`value` where `mask` holds, x elsewhere; the mask broadcasts to x

    x (...), mask (...) -> y (...)
    """
    return where(mask, value, x)


@Composition
def tril(x: Tensor, k: int = 0) -> Tensor:
    """The lower triangle of the last two axes: 0 above diagonal `k`

    x (..., n, m) -> y (..., n, m)
    """
    return where(_triangle("tril", x, k), x, 0)


@Composition
def triu(x: Tensor, k: int = 0) -> Tensor:
    """The upper triangle of the last two axes: 0 below diagonal `k`

    x (..., n, m) -> y (..., n, m)
    """
    return where(~_triangle("triu", x, k - 1), x, 0)


def _triangle(name: str, x: Tensor, k: int) -> Array:
    if x.ndim < 2:
        raise ShapeError(f"{name}: x has shape {x.shape} (must have at least two axes)")
    rows, columns = x.shape[-2:]
    return np.tri(rows, columns, k, dtype=bool)


@Composition
def astype(x: Tensor, dtype: Any) -> Tensor:
    """x in another dtype; between floats the gradient passes, integers and booleans have none

    x (...) -> y (...)
    """
    kind = as_dtype("astype", dtype)
    if kind.kind == "f" and x.dtype.kind == "f":
        return cast(x, dtype=kind)
    return like(x, plain(x).astype(kind))


@Composition
def clone(x: Tensor) -> Tensor:
    """A copy of x; the gradient passes through it

    x (...) -> y (...)
    """
    return astype(x, x.dtype)
