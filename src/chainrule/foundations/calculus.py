"""Numerical derivatives, and closed forms to check them against. A gradient has the shape of its variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations._check import Array, alike, array, square, vector

Function = Callable[[Array], npt.ArrayLike]
Curve = Callable[[float], float]

# The steps that balance truncation (grows with h) against rounding (grows with 1/h), for x of order one.
EPS = float(np.finfo(np.float64).eps)
FORWARD_STEP = EPS ** (1 / 2)
CENTRAL_STEP = EPS ** (1 / 3)


# One variable.


def limit_table(f: Curve, point: float, steps: Sequence[float] = (0.1, 0.01, 0.001)) -> tuple[Array, Array]:
    """x and f(x) closing in on `point` from both sides, x increasing; f(point) itself is never computed.

    a number of steps n -> x (2 n,), f(x) (2 n,)
    """
    x = np.array([point - h for h in steps] + [point + h for h in reversed(steps)])
    return x, np.array([f(float(xi)) for xi in x])


def forward_difference(f: Curve, x: float, h: float | None = None) -> float:
    """(f(x+h) - f(x)) / h, the slope of a secant; its error is of order h."""
    h = step(h, x, FORWARD_STEP)
    return (f(x + h) - f(x)) / h


def backward_difference(f: Curve, x: float, h: float | None = None) -> float:
    """(f(x) - f(x-h)) / h; its error is of order h."""
    h = step(h, x, FORWARD_STEP)
    return (f(x) - f(x - h)) / h


def central_difference(f: Curve, x: float, h: float | None = None) -> float:
    """(f(x+h) - f(x-h)) / 2h; its error is of order h², so it is the default for gradient checks."""
    h = step(h, x)
    return (f(x + h) - f(x - h)) / (2 * h)


def secant_slope(f: Curve, x: float, t: float) -> float:
    """(f(t) - f(x)) / (t - x), the other form of the difference quotient (t = x + h)."""
    return (f(t) - f(x)) / step(t - x, x)


def secant_table(f: Curve, x: float, steps: Sequence[float]) -> Array:
    """The forward quotient for each step: the secant approaches the tangent.

    () and m steps -> (m,)
    """
    return np.array([forward_difference(f, x, h) for h in steps])


class StepStudy(NamedTuple):
    """Error of a difference quotient against the step; `best` is the step with the smallest error."""

    h: Array
    error: Array
    best: float


def step_size_study(
    f: Curve,
    x: float,
    exact: float,
    steps: Sequence[float] | None = None,
    quotient: Callable[[Curve, float, float | None], float] = central_difference,
) -> StepStudy:
    """|quotient - exact| for steps from 0.1 to 1e-15: a large step misses the curve, a small one loses digits."""
    h = np.logspace(-1, -15, 57) if steps is None else vector(steps, "step_size_study")
    error = np.array([abs(quotient(f, x, float(hi)) - exact) for hi in h])
    return StepStudy(h, error, float(h[error.argmin()]))


def polynomial_derivative(coefficients: npt.ArrayLike) -> Array:
    """[3, -4, 5] for 3x² - 4x + 5 gives [6, -4]: the power rule, term by term.

    coefficients (n,) -> (n - 1,)
    """
    c = vector(coefficients, "polynomial_derivative")
    return c[:-1] * np.arange(len(c) - 1, 0, -1)


# Several variables.


def nudge(f: Function, x: npt.ArrayLike, index: int | tuple[int, ...], h: float) -> tuple[float, float]:
    """f(x), and f with only entry `index` moved by h; the sign of the partial derivative says which is larger.

    f: (...) -> (), x (...) -> two of ()
    """
    x = array(x)
    moved = x.copy()
    moved[index] += h
    return _scalar(f(x)), _scalar(f(moved))


def partial(f: Function, x: npt.ArrayLike, index: int | tuple[int, ...], h: float | None = None) -> float:
    """∂f/∂x[index] by a central difference; every other entry stays fixed.

    f: (...) -> (), x (...) -> ()
    """
    h = step(h, float(array(x)[index]))
    return (nudge(f, x, index, h)[1] - nudge(f, x, index, -h)[1]) / (2 * h)


def gradient(f: Function, x: npt.ArrayLike, h: float | None = None) -> Array:
    """∇f for a scalar f; it has the shape of x.

    f: (...) -> (), x (...) -> (...)
    """
    x = array(x)
    g = np.empty_like(x)
    for index in np.ndindex(*x.shape):
        g[index] = partial(f, x, index, h)
    return g


def directional_derivative(grad: npt.ArrayLike, direction: npt.ArrayLike) -> float:
    """∇f · u, the slope per unit step; `direction` is scaled to length one.

    grad (...), direction (...) -> ()
    """
    g, u = alike(grad, direction, "directional_derivative")
    return float((g * u).sum() / _length(u, "directional_derivative"))


def steepest_direction(grad: npt.ArrayLike) -> tuple[Array, float]:
    """The unit direction of steepest ascent and its slope |∇f|; its opposite is the steepest descent.

    grad (...) -> direction (...), slope ()
    """
    g = array(grad)
    slope = _length(g, "steepest_direction")
    return g / slope, slope


def gradient_descent(
    grad: Callable[[Array], npt.ArrayLike], start: npt.ArrayLike, lr: float, steps: int
) -> Array:
    """The points after each step w <- w - lr ∇L(w), shape (steps, *w.shape)."""
    w = array(start)
    path = np.empty((steps, *w.shape))
    for i in range(steps):
        w = w - lr * array(grad(w))
        path[i] = w
    return path


# Closed forms.


def grad_dot(a: npt.ArrayLike) -> Array:
    """∇ (a · x) = a, for every x.

    a (n,) -> (n,)
    """
    return vector(a, "grad_dot").copy()


def grad_squared_norm(x: npt.ArrayLike) -> Array:
    """∇ (x · x) = 2x.

    x (n,) -> (n,)
    """
    return 2 * vector(x, "grad_squared_norm")


def grad_quadratic_form(A: npt.ArrayLike, x: npt.ArrayLike) -> Array:
    """∇ (xᵀ A x) = (A + Aᵀ) x, which is 2Ax when A is symmetric.

    A (n, n), x (n,) -> (n,)
    """
    A, x = square(A, "grad_quadratic_form"), vector(x, "grad_quadratic_form")
    if len(A) != len(x):
        raise ShapeError(f"grad_quadratic_form: A {A.shape}, x {x.shape} (sizes must agree)")
    return (A + A.T) @ x


def grad_norm(x: npt.ArrayLike) -> Array:
    """∇ |x| = x / |x|, a unit vector; at the origin the norm has no gradient.

    x (n,) -> (n,)
    """
    x = vector(x, "grad_norm")
    return x / _length(x, "grad_norm")


def _length(v: Array, name: str) -> float:
    length = float(np.sqrt((v * v).sum()))
    if length == 0:
        raise ConfigError(f"{name}: the zero vector has no direction (must not be 0)")
    return length


def _scalar(y: npt.ArrayLike) -> float:
    y = array(y)
    if y.size != 1:
        raise ShapeError(f"gradient: the function gave shape {y.shape} (must be one number; see jacobian)")
    return float(y.reshape(()))


def step(h: float | None, x: float, default: float = CENTRAL_STEP) -> float:
    """The given step, or one that fits the size of x."""
    if h == 0:
        raise ConfigError("difference quotient: step 0 (must not be 0)")
    return default * max(1.0, abs(x)) if h is None else h
