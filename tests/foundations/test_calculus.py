"""Difference quotients, partials, gradients and the closed forms, against the worked numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations import calculus
from tests.vectors import vector

STEPS = ("1", "0.1", "0.01", "0.001")


def square(x: float) -> float:
    return x**2


def arrays(shape: int | tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float64, shape, elements=st.floats(-2, 2, allow_subnormal=False))


@pytest.mark.requirement("R-026")
def test_limit_table() -> None:
    def f(x: float) -> float:
        return (x**2 - 1) / (x - 1)

    x, y = calculus.limit_table(f, 1.0)
    for xi, yi in zip(x, y, strict=True):
        v = vector(f"004-2.1-limit-{xi:g}")
        assert xi == pytest.approx(v.inputs["x"], rel=1e-15)
        v.check(yi)
    assert np.all(np.diff(x) > 0) and len(x) == 6


@pytest.mark.requirement("R-021", "R-027")
def test_secant_becomes_tangent() -> None:
    x = vector("004-2.2-derivative").inputs["x"]
    table = calculus.secant_table(square, x, [float(h) for h in STEPS])
    for h, slope in zip(STEPS, table, strict=True):
        v = vector(f"004-2.2-diffquot-{h}")
        v.check(slope)
        v.check(calculus.forward_difference(square, x, float(h)))
        v.check(calculus.secant_slope(square, x, x + float(h)))  # t = x + h
    vector("004-2.2-derivative").check(calculus.central_difference(square, x))
    assert np.all(np.diff(np.abs(table - 6)) < 0)


@pytest.mark.requirement("R-021")
@pytest.mark.parametrize("x", [-2.0, 0.3, 50.0])
def test_one_sided_differences(x: float) -> None:
    for quotient in (calculus.forward_difference, calculus.backward_difference):
        assert quotient(math.sin, x) == pytest.approx(math.cos(x), abs=1e-6)


@pytest.mark.requirement("R-023")
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_central_difference_is_the_accurate_default(scale: float) -> None:
    def worst(quotient: Callable[..., float]) -> float:
        points = scale * np.linspace(0.5, 2, 20)
        return max(abs(quotient(math.log, x) * x - 1) for x in points.tolist())

    assert worst(calculus.central_difference) < 1e-9
    assert worst(calculus.forward_difference) > 10 * worst(calculus.central_difference)


@pytest.mark.requirement("R-023")
@pytest.mark.parametrize("quotient", [calculus.forward_difference, calculus.central_difference])
def test_step_size_has_an_optimum_inside(quotient: Callable[..., float]) -> None:
    study = calculus.step_size_study(math.exp, 1.0, math.e, quotient=quotient)
    assert study.h.shape == study.error.shape
    best = int(study.error.argmin())
    assert study.best == study.h[best]
    assert 5 < best < len(study.h) - 5
    assert study.error[0] > 1e3 * study.error[best] and study.error[-1] > 1e3 * study.error[best]
    predicted = calculus.FORWARD_STEP if quotient is calculus.forward_difference else calculus.CENTRAL_STEP
    assert predicted / 100 < study.best < predicted * 100


@pytest.mark.requirement("R-024")
def test_derivative_of_a_quadratic_and_its_signs() -> None:
    v = vector("002-quad-derivative")
    poly, probe = v.inputs["poly_high_to_low"], v.inputs["probe"]
    slope = calculus.polynomial_derivative(poly)
    root = -slope[1] / slope[0]
    signs = [int(np.sign(round(float(np.polyval(slope, x)), 12))) for x in probe]
    v.check({"derivative_poly": slope, "root": root, "signs": signs})
    for x in probe:
        numeric = calculus.central_difference(lambda t: float(np.polyval(poly, t)), x)
        assert numeric == pytest.approx(np.polyval(slope, x), abs=1e-8)


@pytest.mark.requirement("R-022", "R-025")
def test_partials_predict_the_effect_of_a_nudge() -> None:
    def F(x: np.ndarray) -> float:
        return float(x[0] * x[1] + x[2])

    v = vector("002-partials-F")
    at = v.inputs["at"]
    partials = [calculus.partial(F, at, i) for i in range(3)]
    v.check(partials)
    for i, slope in enumerate(partials):
        base, nudged = calculus.nudge(F, at, i, 0.001)
        assert np.sign(nudged - base) == np.sign(slope)

    p = vector("002-perturb-x1")
    base, nudged = calculus.nudge(F, [p.inputs["x1"], p.inputs["x2"], 0.0], 0, p.inputs["h"])
    p.check({"perturbed": nudged, "base": base})


@pytest.mark.requirement("R-030")
def test_gradient_of_a_bowl() -> None:
    v = vector("004-2.5.3-partials")
    v.check([calculus.gradient(lambda p: float(p @ p), point) for point in v.inputs["points"]])


@pytest.mark.requirement("R-038")
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4), ()])
def test_a_gradient_has_the_shape_of_its_variable(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    before = x.copy()
    g = calculus.gradient(lambda x: np.sin(x).sum(), x)
    assert g.shape == x.shape
    np.testing.assert_allclose(g, np.cos(x), rtol=1e-8)
    np.testing.assert_array_equal(x, before)


@pytest.mark.requirement("R-031")
def test_directional_derivative() -> None:
    v = vector("004-2.5.4-directional")
    v.check([calculus.directional_derivative(v.inputs["grad"], u) for u in v.inputs["dirs"]])
    s = vector("004-2.5.4-steepest")
    u, slope = calculus.steepest_direction(s.inputs["grad"])
    s.check({"u": u, "slope": slope})


@pytest.mark.requirement("R-031")
@given(arrays(4).filter(lambda g: np.abs(g).max() > 1e-3), arrays(4).filter(lambda u: np.abs(u).max() > 1e-3))
def test_no_direction_beats_the_gradient(g: np.ndarray, u: np.ndarray) -> None:
    up, steepest = calculus.steepest_direction(g)
    slope = calculus.directional_derivative(g, u)
    cosine = g @ u / np.sqrt((g @ g) * (u @ u))
    assert slope == pytest.approx(steepest * cosine, abs=1e-12)
    assert -steepest - 1e-12 <= slope <= steepest + 1e-12
    assert calculus.directional_derivative(g, up) == pytest.approx(steepest)
    assert calculus.directional_derivative(g, -up) == pytest.approx(-steepest)


@pytest.mark.requirement("R-032")
@pytest.mark.parametrize("rate", ["0.1", "0.5", "0.9", "1.1"])
def test_gradient_descent(rate: str) -> None:
    v = vector(f"004-5.5.1-gd-{rate}")
    path = calculus.gradient_descent(lambda w: 2 * w, v.inputs["theta0"], v.inputs["eta"], v.inputs["steps"])
    v.check(path)


@pytest.mark.requirement("R-037")
def test_closed_forms() -> None:
    linear = vector("004-2.6-linear")
    linear.check(calculus.grad_dot(linear.inputs["a"]))

    squared = vector("004-2.6-squared-norm")
    x = np.array(squared.inputs["x"])
    squared.check({"f": x @ x, "grad": calculus.grad_squared_norm(x)})

    form = vector("004-2.6-quadratic")
    A, x = np.array(form.inputs["A"]), np.array(form.inputs["x"])
    gradient = calculus.grad_quadratic_form(A, x)
    form.check({"Ax": A @ x, "f": x @ A @ x, "A_plus_AT": A + A.T, "grad": gradient})

    norm = vector("004-2.6-norm-grad")
    norm.check(calculus.grad_norm(norm.inputs["x"]))


@pytest.mark.requirement("R-037")
@given(arrays((3, 3)), arrays(3).filter(lambda x: np.abs(x).max() > 0.1))
def test_closed_forms_agree_with_differences(A: np.ndarray, x: np.ndarray) -> None:
    cases = [
        (lambda x: A[0] @ x, calculus.grad_dot(A[0])),
        (lambda x: x @ x, calculus.grad_squared_norm(x)),
        (lambda x: x @ A @ x, calculus.grad_quadratic_form(A, x)),
        (lambda x: np.sqrt(x @ x), calculus.grad_norm(x)),
    ]
    for f, closed in cases:
        np.testing.assert_allclose(closed, calculus.gradient(f, x), rtol=1e-6, atol=1e-7)
    S = A + A.T
    np.testing.assert_allclose(calculus.grad_quadratic_form(S, x), 2 * S @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("error", "bad", "message"),
    [
        (ConfigError, lambda: calculus.forward_difference(square, 1.0, 0.0), "step 0"),
        (ConfigError, lambda: calculus.secant_slope(square, 1.0, 1.0), "step 0"),
        (ConfigError, lambda: calculus.grad_norm([0.0, 0.0]), "grad_norm: the zero vector"),
        (ConfigError, lambda: calculus.steepest_direction([0.0, 0.0]), "the zero vector"),
        (ConfigError, lambda: calculus.directional_derivative([1.0], [0.0]), "the zero vector"),
        (ShapeError, lambda: calculus.directional_derivative([1.0], [0.0, 1.0]), r"\(1,\) and \(2,\)"),
        (ShapeError, lambda: calculus.gradient(lambda x: x, [1.0, 2.0]), r"gave shape \(2,\)"),
        (ShapeError, lambda: calculus.grad_quadratic_form(np.eye(2), [1.0]), r"A \(2, 2\), x \(1,\)"),
        (ShapeError, lambda: calculus.grad_quadratic_form(np.ones((2, 3)), [1.0]), "must be square"),
        (ShapeError, lambda: calculus.polynomial_derivative(3.0), r"got shape \(\)"),
    ],
)
def test_bad_input(error: type[Exception], bad: Callable[[], object], message: str) -> None:
    with pytest.raises(error, match=message):
        bad()
