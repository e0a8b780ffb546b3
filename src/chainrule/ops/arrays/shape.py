"""Shape operations.        Derivations: docs/derivations/shape.md

They move or repeat numbers; their gradients move them back and sum the repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.call import short
from chainrule.autograd.mode import mode
from chainrule.autograd.op import VariadicOp
from chainrule.autograd.recording import assign, empty, reshaped
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import away_from_zero, examples, native_unbroadcast, normal, shapes, unbroadcast


def reshape_forward(x: Array, *, shape: Shape | int) -> Result:
    """The same numbers, in row-major order, in another shape; one size may be -1

    x (...) -> y of `shape`, such as (B, T, C) -> (B T, C)
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    try:
        return reshaped(x, shape), (x.shape,)
    except ValueError:
        rule = "one size may be -1, the others must divide" if -1 in shape else "must be equal"
        count = math.prod(n for n in shape if n != -1)
        raise ShapeError(f"reshape: {x.shape} has {x.size} elements, {shape} has {count} ({rule})") from None


def reshape_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (shape,) = saved
    return (reshaped(dy, shape),)  # forward was: y = x in another shape                           [SH.1]


reshape = Op(
    "reshape", reshape_forward, reshape_backward,
    examples(shapes((3, 4), shape=(2, 6)), shapes((2, 3, 4), shape=(-1, 4)), shapes((7, 1), shape=7),
             shapes((), shape=(1, 1))),
    integers=True, views=True,
)  # fmt: skip


def transpose_forward(x: Array, *, axes: Shape | None = None) -> Result:
    """Axis i of y is axis `axes[i]` of x; reversed when `axes` is None

    x (n₀, n₁, ...) -> y (n_axes[0], n_axes[1], ...)
    """
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple(axes)
    places = [a % x.ndim if -x.ndim <= a < x.ndim else a for a in order]
    if sorted(places) != list(range(x.ndim)):
        swap = f"; swapaxes{order} swaps two" if len(order) == 2 else ""
        raise ShapeError(f"transpose: axes {order} for shape {x.shape} (each axis must appear once{swap})")
    return x.transpose(places), (tuple(np.argsort(places).tolist()),)


def transpose_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (inverse,) = saved
    return (dy.transpose(inverse),)  # forward was: y = x with its axes reordered                  [SH.2]


transpose = Op(
    "transpose", transpose_forward, transpose_backward,
    examples(shapes((3, 4)), shapes((2, 3, 4), axes=(1, 2, 0)), shapes((2, 1, 7), axes=(0, -1, 1))),
    integers=True, views=True,
)  # fmt: skip


def broadcast_to_forward(x: Array, *, shape: Shape | int) -> Result:
    """x repeated along new leading axes and along its axes of size 1, up to `shape`

    x (...) -> y of `shape`, such as (C,) -> (B, T, C)
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    try:
        return np.broadcast_to(x, shape), (x.shape,)
    except ValueError:
        rule = "from the right, each size must be equal or 1"
        raise ShapeError(f"broadcast_to: {x.shape} to {shape} ({rule})") from None


def broadcast_to_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (shape,) = saved
    return (unbroadcast(dy, shape),)  # forward was: y = copies of x; their gradients add up       [SH.3]


def broadcast_to_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (shape,) = saved
    return (native_unbroadcast(dy, shape),)


broadcast_to = Op(
    "broadcast_to", broadcast_to_forward, broadcast_to_backward,
    examples(shapes((4,), shape=(3, 4)), shapes((3, 1), shape=(2, 3, 7)), shapes((), shape=5)),
    native=(broadcast_to_forward, broadcast_to_native_backward), integers=True, views=True,
)  # fmt: skip


def concat_forward(*xs: Array, axis: int = 0) -> Result:
    """x₁, x₂, ... one after the other along `axis`; all other sizes must be equal

    x₁ (..., n₁, ...), x₂ (..., n₂, ...) -> y (..., n₁ + n₂, ...)
    """
    axis, edges = _edges(xs, axis)
    if mode.recording is None:
        return np.concatenate(xs, axis=axis), (axis, edges)
    shape = xs[0].shape
    y = empty((*shape[:axis], edges[-1], *shape[axis + 1 :]), np.result_type(*xs))
    for x, (start, stop) in zip(xs, pairwise(edges), strict=True):
        assign(y[(slice(None),) * axis + (slice(start, stop),)], x)
    return y, (axis, edges)


def concat_abstract(*xs: Array, axis: int = 0) -> Result:
    axis, edges = _edges(xs, axis)
    shape = xs[0].shape
    return abstract((*shape[:axis], edges[-1], *shape[axis + 1 :]), xs[0].dtype), (axis, edges)


def _edges(xs: tuple[Array, ...], axis: int) -> tuple[int, Shape]:
    """The axis counted from the front, and the offsets along it where the arrays begin and end."""
    if not xs:
        raise ShapeError("concat: got no arrays (must have at least one)")
    first, ndim = xs[0].shape, xs[0].ndim
    if not -ndim <= axis < ndim:
        raise ShapeError(f"concat: axis {axis} for shape {first} (must be one of its {ndim} axes)")
    axis %= ndim
    for shape in [x.shape for x in xs[1:]]:
        if len(shape) != ndim or (*shape[:axis], first[axis], *shape[axis + 1 :]) != first:
            raise ShapeError(f"concat: {first} and {shape} along axis {axis} (other sizes must be equal)")
    return axis, tuple(accumulate((x.shape[axis] for x in xs), initial=0))


def concat_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    axis, edges = saved
    front = (slice(None),) * axis
    pieces = zip(needs, pairwise(edges), strict=True)  # forward was: y = [x₁, x₂, ...]
    return tuple(dy[*front, start:stop] if need else None for need, (start, stop) in pieces)  #    [SH.4]


concat = VariadicOp(
    "concat", concat_forward, concat_backward,
    examples(shapes((3, 4), (2, 4)), shapes((2, 3, 1), (2, 3, 7), (2, 3, 2), axis=-1), shapes((5,))),
    abstract=concat_abstract, integers=True, views=True,
)  # fmt: skip


def where_forward(condition: Array, a: Array, b: Array) -> Result:
    """y = a where `condition` holds (is not 0), b elsewhere; all three broadcast

    condition (...), a (...), b (...) -> y (...)
    """
    chosen = condition != 0
    return np.where(chosen, a, b), (chosen, a.shape, b.shape)


def where_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    chosen, a_shape, b_shape = saved
    return (  # forward was: y = a or b; only the chosen one affects y, the condition by jumps alone  [SH.5]
        np.zeros(chosen.shape, dy.dtype) if needs[0] else None,
        unbroadcast(np.where(chosen, dy, 0), a_shape) if needs[1] else None,
        unbroadcast(np.where(chosen, 0, dy), b_shape) if needs[2] else None,
    )


def where_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((rng.random((3, 4)) < 0.5, normal(rng, 3, 4), normal(rng, 3, 4)))
    yield Example((rng.random((7, 4)) < 0.5, normal(rng, 4), normal(rng, 7, 1)))
    yield Example((np.array([True, False, True]), normal(rng, 2, 3), normal(rng)))
    yield Example((away_from_zero(rng, 3), normal(rng, 2, 3), normal(rng, 3)))


where = Op("where", where_forward, where_backward, where_example, integers=True)


def cast_forward(x: Array, *, dtype: Any) -> Result:
    """A copy of x in another float dtype; its gradient comes back in the dtype of x

    x (...) -> y (...)
    """
    kind = as_dtype("cast", dtype)
    if kind.kind != "f":
        raise ConfigError(f"cast: dtype {kind} has no gradient (must be a float dtype; astype takes any)")
    return x.astype(kind), (x.dtype,)


def cast_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (dtype,) = saved
    return (dy.astype(dtype),)  # forward was: y = x, rounded                                       [SH.6]


def as_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype that is meant, of numbers or booleans."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ConfigError(f"{name}: got {short(dtype)} (must be a dtype, such as np.float32)") from error
    if kind.kind not in "fiub":
        raise ConfigError(f"{name}: dtype {kind} (must be of numbers or booleans)")
    return kind


cast = Op("cast", cast_forward, cast_backward, examples(shapes((3, 4), dtype=np.float64)), integers=True)
