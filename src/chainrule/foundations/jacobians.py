"""Derivatives of arrays by arrays, and the chain rule as a product of Jacobians.

A Jacobian has the output axes first, then the input axes; flattening is row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations._check import Array, alike, array
from chainrule.foundations.calculus import Curve, Function, step


def flatten(x: npt.ArrayLike) -> Array:
    """(m, n) -> (mn,), row by row: x11, x12, ..., x21, ..."""
    return array(x).reshape(-1)


def fold(v: npt.ArrayLike, shape: Sequence[int]) -> Array:
    """The inverse of `flatten`.

    v (n,) -> an array of `shape`, n numbers such as (r, c) with r c = n
    """
    v = array(v)
    if v.size != np.prod(shape):
        raise ShapeError(f"fold: {v.size} entries into shape {tuple(shape)} (must be {np.prod(shape)})")
    return v.reshape(shape)


def jacobian(f: Function, x: npt.ArrayLike, h: float | None = None) -> Array:
    """All ∂f_i/∂x_j, shape f(x).shape + x.shape: the output axes first, so that Δy = J Δx.

    f: (m,) from (n,), or of any shapes -> (m, n)
    """
    x = array(x)
    J = np.empty(array(f(x)).shape + x.shape)
    for index in np.ndindex(*x.shape):
        dx = np.zeros_like(x)
        dx[index] = step(h, float(x[index]))
        J[..., *index] = (array(f(x + dx)) - array(f(x - dx))) / (2 * dx[index])
    return J


def jacobian_matrix(f: Function, x: npt.ArrayLike, h: float | None = None) -> Array:
    """The Jacobian between the flattened output and the flattened input, (outputs, inputs).

    f: (...) -> (...), x (...) -> (outputs, inputs)
    """
    J = jacobian(f, x, h)
    return J.reshape(-1, array(x).size)


def vjp(J: npt.ArrayLike, dy: npt.ArrayLike) -> Array:
    """Jᵀ dy: the gradient of the input from that of the output. J has the axes of dy first.

    J (m, n), dy (m,) -> (n,)
    """
    J, dy = array(J), array(dy)
    if J.shape[: dy.ndim] != dy.shape:
        raise ShapeError(f"vjp: J {J.shape}, dy {dy.shape} (J must begin with the shape of dy)")
    return np.tensordot(dy, J, axes=dy.ndim)


class LinearPrediction(NamedTuple):
    """The predicted change J Δx, the true change, and their difference, which shrinks with |Δx|²."""

    predicted: Array
    actual: Array
    error: Array


def linear_prediction(
    f: Function, x: npt.ArrayLike, dx: npt.ArrayLike, h: float | None = None
) -> LinearPrediction:
    """Predict the change of f by its Jacobian and compare it with the true change.

    f: (...) -> (...), x (...), dx (...) -> changes (...), predicted and true
    """
    x, dx = alike(x, dx, "linear_prediction")
    predicted = np.tensordot(jacobian(f, x, h), dx, axes=x.ndim)
    actual = array(f(x + dx)) - array(f(x))
    return LinearPrediction(predicted, actual, actual - predicted)


# The chain rule.


class ChainProbe(NamedTuple):
    """One finite step through u = g(x), y = f(u): the rates multiply because Δu cancels."""

    u: float
    y: float
    u_new: float
    y_new: float
    du_dx: float
    dy_du: float
    dy_dx: float


def chain_rule_probe(inner: Curve, outer: Curve, x: float, dx: float) -> ChainProbe:
    """Follow a step dx through both functions and take the three rates of change."""
    u, u_new = inner(x), inner(x + step(dx, x))
    y, y_new = outer(u), outer(u_new)
    if u_new == u:
        raise ConfigError(f"chain_rule_probe: the inner function does not change for dx = {dx} (must change)")
    return ChainProbe(u, y, u_new, y_new, (u_new - u) / dx, (y_new - y) / (u_new - u), (y_new - y) / dx)


class ChainCheck(NamedTuple):
    """The Jacobian of each link, their product, that of the whole, and the largest relative difference."""

    links: list[Array]
    product: Array
    total: Array
    error: float


def chain_rule_check(functions: Sequence[Function], x: npt.ArrayLike, h: float | None = None) -> ChainCheck:
    """Check J(f_n ∘ ... ∘ f_1) = J_n ... J_1 numerically; the functions are applied in the order given.

    functions (...) -> (...), x (...) -> two Jacobians (outputs, inputs)

    With several intermediate variables the matrix product is the sum over all paths.
    """
    x = array(x)
    links: list[Array] = []
    product = np.eye(x.size)
    here = x
    for f in functions:
        links.append(jacobian_matrix(f, here, h))
        product = links[-1] @ product  # (outputs of f, x.size)
        here = array(f(here))

    def whole(start: Array) -> Array:
        for f in functions:
            start = array(f(start))
        return start

    total = jacobian_matrix(whole, x, h)
    error = float(np.abs(product - total).max() / max(1.0, np.abs(total).max()))
    return ChainCheck(links, product, total, error)
