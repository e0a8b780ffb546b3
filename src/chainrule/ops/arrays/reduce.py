"""Reductions: sum, mean, max, min, prod, norm, logsumexp, cumsum.        Derivations: docs/derivations/reduce.md

`axis` is None (all axes), a number or a tuple, negative from the end; `keepdims` keeps the axes with size 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.types import Array, Axis, Grads, Needs, Result, Saved, Shape
from chainrule.errors import ShapeError
from chainrule.ops._util import check_axis, examples, shapes
from chainrule.ops.arrays.elementwise import exp, log, mul

SMALL = 1 << 12  # elements: up to here filling an array is quicker than taking a view of repeated values


def _axes(name: str, x: Array, axis: Axis) -> tuple[int, ...]:
    """`axis` as a tuple of numbers from 0 to ndim - 1."""
    if axis is None:
        return tuple(range(x.ndim))
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    for a in axes:
        if not isinstance(a, int | np.integer):
            raise ShapeError(f"{name}: axis {axis!r} (must be an integer, a tuple of them, or None)")
        if not -x.ndim <= a < x.ndim:
            rule = f"must be from {-x.ndim} to {x.ndim - 1}" if x.ndim else "a number has no axis"
            raise ShapeError(f"{name}: axis {a} for shape {x.shape} ({rule})")
    axes = tuple(a % x.ndim for a in axes)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{name}: axis {axis} for shape {x.shape} (an axis must not appear twice)")
    return axes


def _kept(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The shape with reduced axes of size 1, which broadcasts against the input."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def _spread(dy: Array, shape: Shape, axes: tuple[int, ...]) -> Array:
    """dy repeated along the axes that were reduced: a view, or a small array."""
    dy = dy.reshape(_kept(shape, axes))
    if math.prod(shape) > SMALL:
        return np.broadcast_to(dy, shape)
    dx = np.empty(shape, dy.dtype)
    dx[...] = dy
    return dx


_example = examples(
    shapes((3, 4)), shapes((2, 3, 4), axis=-1), shapes((2, 3, 4), axis=1, keepdims=True),
    shapes((2, 3, 4), axis=(0, -1)), shapes((7, 1), axis=1), shapes((7,), axis=0, keepdims=True)
)  # fmt: skip
_small = examples(
    shapes((3, 4), axis=0), shapes((2, 3, 4), axis=-1), shapes((2, 3, 2), axis=1, keepdims=True), shapes((2, 2)),
    shapes((2, 3, 2), axis=(0, -1)), lambda rng: Example((np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.5]]),), {"axis": 1}),
)  # fmt: skip


def sum_forward(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """y = Σ x over `axis`

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("sum", x, axis)
    return x.sum(axis=axes, keepdims=keepdims), (x.shape, axes)


def sum_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    shape, axes = saved
    return (_spread(dy, shape, axes),)  # forward was: y = Σ x                                    [RD.1]


sum = Op("sum", sum_forward, sum_backward, _example, integers=True)


def mean_forward(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """y = (1/n) Σ x over `axis`, n the number of summed elements

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("mean", x, axis)
    n = math.prod(x.shape[a] for a in axes)
    if n == 0:
        raise ShapeError(f"mean: axis {axis} of shape {x.shape} has no elements (must have at least one)")
    return x.mean(axis=axes, keepdims=keepdims), (x.shape, axes, n)


def mean_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    shape, axes, n = saved
    return (_spread(dy / n, shape, axes),)  # forward was: y = Σ x / n                            [RD.2]


def mean_composed(x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    total = sum(x, axis=axis, keepdims=keepdims)
    return mul(total, total.size / x.size)


mean = Op("mean", mean_forward, mean_backward, _example, composed=mean_composed)


def max_forward(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """y = max x over `axis`; equal maxima share the gradient equally

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("max", x, axis)
    y = x.max(axis=axes, keepdims=True)
    return (y if keepdims else y.squeeze(axes)), (x, y, axes)


def max_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, y, axes = saved
    largest = x == y  # forward was: y = max x
    count = largest.sum(axis=axes, keepdims=True, dtype=x.dtype)
    return (largest * (dy.reshape(y.shape) / count),)  #                                           [RD.3]


max = Op("max", max_forward, max_backward, _example, integers=True)


def min_forward(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """y = min x over `axis`; equal minima share the gradient equally

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("min", x, axis)
    y = x.min(axis=axes, keepdims=True)
    return (y if keepdims else y.squeeze(axes)), (x, y, axes)


min = Op("min", min_forward, max_backward, _example, integers=True)


def prod_forward(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """y = Π x over `axis`

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("prod", x, axis)
    return x.prod(axis=axes, keepdims=keepdims), (x, axes)


def prod_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, axes = saved
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    order = (*kept, *axes)
    n = math.prod(x.shape[i] for i in axes)
    rows = x.transpose(order).reshape(*(x.shape[i] for i in kept), n)  # (..., n)
    ones = np.ones_like(rows[..., :1])
    before = np.cumprod(np.concatenate([ones, rows[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, rows[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    others = (before * after).reshape([x.shape[i] for i in order])  # a division would fail at 0
    each = others.transpose(np.argsort(order)) if order else others
    return (each * dy.reshape(_kept(x.shape, axes)),)  # forward was: y = Π x                        [RD.6]


prod = Op("prod", prod_forward, prod_backward, _small, integers=True)


def norm_forward(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """y = √(Σ x²) over `axis`, the Euclidean norm; the subgradient at x = 0 is 0

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("norm", x, axis)
    y = np.sqrt(np.square(x).sum(axis=axes, keepdims=True))
    return (y if keepdims else y.squeeze(axes)), (x, y)


def norm_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, y = saved
    return (x * (dy.reshape(y.shape) / np.where(y == 0, 1, y)),)  # forward was: y = √(Σ x²)         [RD.7]


norm = Op("norm", norm_forward, norm_backward, _example)


def l2_loss_forward(x: Array) -> Result:
    """y = ½ Σ x², half the squared norm

    x (...) -> y ()
    """
    return np.square(x).sum() / 2, (x,)


def l2_loss_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (x * dy,)  # forward was: y = ½ Σ x²                                                    [RD.9]


def l2_loss_native_forward(x: Array) -> Result:
    y = native.empty(())
    native.kernels().l2_loss(y, x)
    return y, (x,)


def l2_loss_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    dx = native.empty_like(saved[0])
    native.kernels().mul(dx, saved[0], dy)
    return (dx,)


l2_loss = Op(
    "l2_loss", l2_loss_forward, l2_loss_backward, examples(shapes((3, 4)), shapes((2, 3, 5)), shapes((70,))),
    composed=lambda x: mul(sum(mul(x, x)), 0.5), native=(l2_loss_native_forward, l2_loss_native_backward),
    abstract=lambda x: (abstract((), x.dtype), (x,)),
)  # fmt: skip


def cumsum_forward(x: Array, *, axis: int = -1) -> Result:
    """y[i] = x[0] + ... + x[i] along `axis`

    x (...) -> y (...)
    """
    axis = check_axis("cumsum", axis, x.shape)
    return np.cumsum(x, axis=axis, dtype=None if x.dtype.kind == "b" else x.dtype), (axis,)


def cumsum_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (axis,) = saved
    back = np.flip(dy, axis)  # forward was: y[i] = Σ_{j ≤ i} x[j]; x[j] is in every y[i] from j on
    return (np.flip(np.cumsum(back, axis=axis), axis),)  #                                         [RD.8]


cumsum = Op(
    "cumsum", cumsum_forward, cumsum_backward,
    examples(shapes((3, 4)), shapes((2, 3, 4), axis=1), shapes((7, 1), axis=0)), integers=True,
)  # fmt: skip


def logsumexp_forward(x: Array, *, axis: Axis = -1, keepdims: bool = False) -> Result:
    """y = ln Σ eˣ over `axis`, without overflow; -inf where every x is -inf, inf where one x is inf

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    axes = _axes("logsumexp", x, axis)
    top = x.max(axis=axes, keepdims=True, initial=-np.inf)
    if np.isfinite(top).all():
        e = np.asarray(x - top)
        np.exp(e, out=e)
    else:  # inf - inf: an entry equal to an infinite maximum counts as e⁰; rows of -inf as 0
        with np.errstate(invalid="ignore"):
            e = np.exp(np.where(x == top, 0, x - top)) * (top != -np.inf)
    total = e.sum(axis=axes, keepdims=True)
    with np.errstate(divide="ignore"):
        y = np.log(total) + top  #                                                                 [RD.4]
    return (y if keepdims else y.squeeze(axes)), (e, total)


def logsumexp_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    e, total = saved  # forward was: y = ln Σ eˣ; total is at least 1, or 0 where all x are -inf
    return (e * (dy.reshape(total.shape) / np.maximum(total, 1)),)  #                              [RD.5]


logsumexp = Op(
    "logsumexp", logsumexp_forward, logsumexp_backward, _example,
    # Overflows where the fused form does not.
    composed=lambda x, *, axis=-1, keepdims=False: log(sum(exp(x), axis=axis, keepdims=keepdims)),
)  # fmt: skip
