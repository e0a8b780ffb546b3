"""Variance and standard deviation, and other small formulas made of ops.    Derivations: docs/derivations/reduce.md"""

from __future__ import annotations

from chainrule.autograd import Tensor
from chainrule.autograd.types import Axis
from chainrule.errors import ShapeError
from chainrule.ops._composition import Composition
from chainrule.ops.arrays import elementwise
from chainrule.ops.arrays.reduce import mean, norm, sum
from chainrule.ops.arrays.shape import reshape


@Composition
def var(x: Tensor, *, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Variance Σ (x - mean)² / (n - correction) over `axis`; with correction 1 unbiased (PyTorch's default).

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    centered = _centered(x, axis)
    squares = sum(elementwise.mul(centered, centered), axis=axis, keepdims=keepdims)
    return elementwise.div(squares, _freedom("var", x, squares, correction))


@Composition
def std(x: Tensor, *, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Standard deviation over `axis`, the root of `var`; the subgradient where all x are equal is 0.

    x (...) -> y (...) without `axis`, or with size 1 there by `keepdims`; over all axes ()
    """
    length = norm(_centered(x, axis), axis=axis, keepdims=keepdims)
    return elementwise.div(length, _freedom("std", x, length, correction) ** 0.5)


def _centered(x: Tensor, axis: Axis) -> Tensor:
    return elementwise.sub(x, mean(x, axis=axis, keepdims=True))


def _freedom(name: str, x: Tensor, reduced: Tensor, correction: float) -> float:
    """The number of elements of x that each of the reduced ones is made of, less the correction."""
    n = x.size // max(1, reduced.size)
    if not n > correction:
        raise ShapeError(f"{name}: {n} elements, correction {correction} (must be fewer)")
    return n - correction


@Composition
def rsqrt(x: Tensor) -> Tensor:
    """1 / √x

    x (...) -> y (...)
    """
    return elementwise.div(1.0, elementwise.sqrt(x))


@Composition
def outer(a: Tensor, b: Tensor) -> Tensor:
    """a (n,), b (m,) -> (n, m), every element of a times every element of b"""
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer: a is {a.shape}, b is {b.shape} (both must be vectors)")
    return elementwise.mul(reshape(a, shape=(-1, 1)), b)
