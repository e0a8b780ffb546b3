"""Small helpers shared by the ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd import Example
from chainrule.autograd.call import short
from chainrule.autograd.mode import mode
from chainrule.autograd.op import Examples
from chainrule.autograd.types import Array, Grads, Into, Needs, Result, Saved, Shape
from chainrule.errors import ShapeError


def rows(x: Array) -> Array:
    """Merge the leading axes: (..., k) -> (rows, k)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def times(a: Array, b: Array) -> Array:
    """a @ b; float32 inputs are rounded to the current precision (`cr.precision`)."""
    return np.asarray(np.matmul(_factor(a), _factor(b)))


def _factor(x: Array) -> Array:
    if mode.precision == "fp32" or x.dtype != np.float32:
        return x
    if mode.precision == "fp16":
        with np.errstate(over="ignore"):  # infinity, which loss scaling detects
            return x.astype(np.float16).astype(np.float32)
    u = np.ascontiguousarray(x).view(np.uint32)
    rounded = ((u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000).view(np.float32)  # to the nearest, ties to even
    return np.where(np.isnan(x), x, rounded)


def unbroadcast(grad: Array, shape: Shape) -> Array:
    """Sum `grad` over the axes along which an input of `shape` was repeated: the adjoint of broadcasting."""
    if grad.shape == shape:
        return grad
    lead = grad.ndim - len(shape)
    stretched = tuple(i + lead for i, n in enumerate(shape) if n == 1 and grad.shape[i + lead] != 1)
    total: Array = grad.sum(axis=tuple(range(lead)) + stretched, keepdims=True)
    return total.reshape(shape)


def native_unbroadcast(grad: Array, shape: Shape) -> Array:
    """The same by kernels, for an input that lacks only leading axes."""
    if grad.shape == shape or grad.shape[grad.ndim - len(shape) :] != shape or not grad.size:
        return unbroadcast(grad, shape)
    if math.prod(shape) == 1:
        return native_sum(grad).reshape(shape)
    total = native.cleared(shape)
    native.kernels().column_sums(total.reshape(-1), grad.reshape(-1, total.size))
    return total


def native_sum(x: Array) -> Array:
    """The sum of all elements of x, float32 and contiguous, as an array without axes."""
    total = native.empty(())
    native.kernels().sum(total, x)
    return total


def sum_lead(grad: Array, axes: int = 1) -> Array:
    """Sum over all but the last `axes` axes: the gradient of a parameter shared by every row."""
    total: Array = grad.sum(axis=tuple(range(grad.ndim - axes)))
    return total


def mean_last(x: Array) -> Array:
    """Mean over the last axis, which stays with size 1."""
    mean: Array = x.mean(axis=-1, keepdims=True)
    return mean


FAR = 1e3  # means this many standard deviations from 0 are computed again from the centered values


def centered(x: Array, axis: int) -> tuple[Array, Array, Array]:
    """x less its mean along `axis`, the mean, and the variance; the axis stays with size 1.

    A mean that is large beside the spread carries a rounding error of the size of the spread, so that a constant row
    would be normalized to ±1: what is left of the mean after centering is added to it.
    """
    mean: Array = x.mean(axis=axis, keepdims=True)
    y = x - mean
    with np.errstate(over="ignore"):  # the row becomes NaN (`rstd_of`)
        var = (y * y).mean(axis=axis, keepdims=True)
        far = np.abs(mean) > FAR * np.sqrt(var)
        if far.any():
            mean = np.where(far, mean + y.mean(axis=axis, keepdims=True), mean)
            y = x - mean
            var = (y * y).mean(axis=axis, keepdims=True)
    return y, mean, var


def rstd_of(var: Array, eps: float) -> Array:
    """1/√(σ² + ε); NaN for a row whose squares overflowed: a 0 would hide it behind finite outputs."""
    rstd = 1 / np.sqrt(var + eps)
    return np.where(rstd == 0, np.asarray(np.nan, rstd.dtype), rstd)


def check_features(name: str, x: Array, **features: Array) -> None:
    """Parameters and statistics of the features of x (..., C) must have the shape (C,)."""
    wrong = [what for what, array in features.items() if x.ndim == 0 or array.shape != x.shape[-1:]]
    if wrong:
        given = ", ".join(f"{what} {array.shape}" for what, array in features.items())
        rule = f"{' and '.join(wrong)} must have the size of x's last axis"
        raise ShapeError(f"{name}: x {x.shape}, {given} ({rule})")


def check_axis(name: str, axis: Any, shape: Shape) -> int:
    """The axis, counted from the front."""
    if not isinstance(axis, int | np.integer) or not -len(shape) <= axis < len(shape):
        rule = f"must be from {-len(shape)} to {len(shape) - 1}" if shape else "a number has no axis"
        raise ShapeError(f"{name}: axis {short(axis)} for shape {shape} ({rule})")
    return int(axis) % len(shape)


def native_map(
    forward: str, backward: str, *, saves_output: bool = False
) -> tuple[Callable[[Array], Result], Callable[[Array, Saved, Needs], Grads]]:
    """The native pair of an elementwise function that saves only x, or only y, by the names of its kernels."""

    def native_forward(x: Array) -> Result:
        y = native.empty_like(x)
        getattr(native.kernels(), forward)(y, x)
        return y, (y if saves_output else x,)

    def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
        dx = native.empty_like(dy)
        getattr(native.kernels(), backward)(dx, saved[0], dy)
        return (dx,)

    return native_forward, native_backward


def summed_into(need: Any, shape: Shape) -> Array:
    """Where a kernel adds the gradient of a parameter: its place in the flat block, or new zeros."""
    return need.array if isinstance(need, Into) else native.cleared(shape)


def product_into(need: Any, like: Array) -> tuple[Array, bool]:
    """Where a matmul writes the gradient of a parameter, and whether it adds to what is there."""
    return need.taken() if isinstance(need, Into) else (native.empty_like(like), False)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    """Standard normal example values."""
    return rng.normal(size=shape)


def away_from_zero(rng: np.random.Generator, *shape: int, gap: float = 0.2) -> Array:
    """Example values of both signs with |x| > gap, for functions with a kink at 0."""
    x = rng.normal(size=shape)
    return x + gap * np.sign(x)


OneExample: TypeAlias = Callable[[np.random.Generator], Example]


def shapes(*inputs: Shape, draw: Callable[..., Array] = normal, **constants: Any) -> OneExample:
    """An example with random inputs of these shapes: `shapes((2, 3), (3,), eps=0.1)`."""
    return lambda rng: Example(tuple([draw(rng, *shape) for shape in inputs]), constants)


def examples(*each: OneExample) -> Examples:
    """The `example` of an op: `examples(shapes((3, 4)), shapes((7, 1)))`."""
    return lambda rng: (make(rng) for make in each)
