"""Rank, determinant, eigenvectors and singular values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations import linear_algebra as la
from chainrule.foundations import matrices
from tests.vectors import vector

rng = np.random.default_rng(0)


@pytest.mark.requirement("R-052")
def test_ranks() -> None:
    v = vector("004-1.5.1-ranks")
    v.check([matrices.rank(A) for A in v.inputs["matrices"]])


@pytest.mark.requirement("R-052")
def test_a_rank_deficient_matrix_loses_information() -> None:
    v = vector("004-1.5.1-collapse")
    A, xs = v.inputs["A"], v.inputs["xs"]
    v.check([la.matvec(A, x) for x in xs])
    (direction,) = matrices.null_space(A)
    np.testing.assert_allclose(np.array(A) @ direction, 0, atol=1e-12)
    for x in xs[1:]:  # the inputs differ by something the matrix cannot see
        difference = la.unit(np.array(x) - np.array(xs[0]))
        assert abs(la.dot(difference, direction)) == pytest.approx(1, rel=1e-12)


@pytest.mark.requirement("R-053")
@pytest.mark.parametrize("name", ["stretch", "parallelogram", "singular", "reflection", "diag3"])
def test_worked_determinants(name: str) -> None:
    v = vector(f"004-1.5.2-det-{name}")
    v.check(matrices.determinant(v.inputs["A"]))


@pytest.mark.requirement("R-053")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_determinant_in_general(n: int) -> None:
    A, B = rng.normal(size=(2, n, n))
    assert matrices.determinant(A) == pytest.approx(np.linalg.det(A), rel=1e-10)
    product = matrices.determinant(A) * matrices.determinant(B)
    assert matrices.determinant(A @ B) == pytest.approx(product, rel=1e-9)
    if n > 1:
        swapped = A[[1, 0, *range(2, n)]]
        assert matrices.determinant(swapped) == pytest.approx(-matrices.determinant(A), rel=1e-10)


@pytest.mark.requirement("R-053")
@given(hnp.arrays(np.int64, (4, 4), elements=st.integers(-3, 3)))
def test_determinant_is_zero_exactly_when_rank_is_missing(A: np.ndarray) -> None:
    assert (abs(matrices.determinant(A)) < 1e-9) == (matrices.rank(A) < 4)


@pytest.mark.requirement("R-053")
@pytest.mark.parametrize("name", ["A", "B"])
def test_determinant_is_the_area_of_the_image(name: str) -> None:
    v = vector(f"004-1.5.2-corners-{name}")
    A, corners = v.inputs["A"], v.inputs["xs"]
    images = [la.matvec(A, x) for x in corners]
    v.check(images)
    outline = [images[i] for i in (0, 1, 3, 2)]  # around the parallelogram
    assert matrices.signed_area(outline) == pytest.approx(matrices.determinant(A), abs=1e-12)


@pytest.mark.requirement("R-053")
def test_any_area_is_scaled_alike() -> None:
    v = vector("004-1.5.2-area-scaling")
    area, factor = v.inputs["factors"]
    triangle = np.array([[0.0, 0.0], [5.0, 0.0], [1.0, 4.0]])
    A = np.array(vector("004-1.5.2-det-parallelogram").inputs["A"])
    assert matrices.signed_area(triangle) == area and matrices.determinant(A) == factor
    v.check(matrices.signed_area(triangle @ A.T))


@pytest.mark.requirement("R-053")
def test_sign_is_orientation() -> None:
    v = vector("004-1.5.2-orientation")
    polygon = np.array(v.inputs["polygon"])
    v.check(matrices.signed_area(polygon))
    R = np.array(vector("004-1.5.2-det-reflection").inputs["A"])
    assert matrices.signed_area(polygon @ R.T) == -1 == matrices.determinant(R)


@pytest.mark.requirement("R-054")
def test_characteristic_polynomial_and_eigenvalues() -> None:
    v = vector("004-1.5.3-charpoly")
    A = v.inputs["A"]
    poly = matrices.characteristic_polynomial(A)
    v.check({"poly": poly, "eigenvalues": matrices.eigenvalues(A)})
    w = vector("004-1.5.3-eigenvectors")
    w.check([la.matvec(A, x) for x in w.inputs["xs"]])
    values, V = matrices.eigen(A)
    np.testing.assert_allclose(values, [5, 2], rtol=1e-12)
    for column, x in zip(V.T, w.inputs["xs"], strict=True):
        assert abs(la.dot(column, la.unit(x))) == pytest.approx(1, rel=1e-12)


@pytest.mark.requirement("R-054")
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_eigenvectors_are_only_stretched(n: int) -> None:
    A = rng.normal(size=(n, n))
    poly = matrices.characteristic_polynomial(A)
    np.testing.assert_allclose(poly, np.poly(A), rtol=1e-8, atol=1e-10)
    assert np.polyval(poly, 0.3) == pytest.approx(matrices.determinant(0.3 * np.eye(n) - A), rel=1e-9)
    values, V = matrices.eigen(A)
    np.testing.assert_allclose(A @ V, V * values, atol=1e-10)
    np.testing.assert_allclose(matrices.eigenvalues(A), values, atol=1e-8)


@pytest.mark.requirement("R-055")
def test_powers_in_the_eigenbasis() -> None:
    v = vector("004-1.5.3-apply")
    v.check(matrices.power_apply(v.inputs["A"], v.inputs["x"], 1))

    v = vector("004-1.5.3-A100")
    A, x, n = v.inputs["A"], v.inputs["x"], v.inputs["n"]
    exact = [int(entry) for entry in x]
    for _ in range(n):
        exact = [sum(int(a) * e for a, e in zip(row, exact, strict=True)) for row in A]
    c1, c2 = Fraction(7, 3), Fraction(2, 3)
    by_eigenvectors = [c1 * 5**n + c2 * 2**n, c1 * 5**n - 2 * c2 * 2**n]
    value = matrices.power_apply(A, x, n)
    v.check({"identity_holds_exactly": exact == by_eigenvectors, "value": value})


@pytest.mark.requirement("R-056")
@pytest.mark.parametrize("theta", [1.0, 0.3, 2.5])
def test_a_rotation_has_complex_eigenvalues(theta: float) -> None:
    R = matrices.rotation(theta)
    expected = [complex(math.cos(theta), math.sin(theta)), complex(math.cos(theta), -math.sin(theta))]
    np.testing.assert_allclose(matrices.eigenvalues(R), expected, atol=1e-12)
    np.testing.assert_allclose(matrices.eigen(R)[0], expected, atol=1e-12)
    if theta == 1.0:
        assert np.round(matrices.eigenvalues(R)[0], 4) == 0.5403 + 0.8415j
    x = rng.normal(size=2)
    turned = matrices.power_apply(R, x, 10)
    np.testing.assert_allclose(turned, matrices.rotation(10 * theta) @ x, atol=1e-12)


@pytest.mark.requirement("R-057")
def test_orthogonal_matrices_keep_lengths_and_angles() -> None:
    Q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    np.testing.assert_allclose(Q.T @ Q, np.eye(5), atol=1e-12)
    assert matrices.is_orthogonal(Q)
    assert abs(matrices.determinant(Q)) == pytest.approx(1, abs=1e-12)
    u, v = rng.normal(size=(2, 5))
    assert la.norm(Q @ v) == pytest.approx(la.norm(v), abs=1e-12)
    assert la.dot(Q @ u, Q @ v) == pytest.approx(la.dot(u, v), abs=1e-12)
    assert matrices.is_orthogonal(matrices.rotation(0.4))
    assert not matrices.is_orthogonal(2 * Q) and not matrices.is_orthogonal(rng.normal(size=(5, 5)))


@pytest.mark.requirement("R-058")
@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((64, 512), matrices.Intent("compress", 64, 448)),
        ((2048, 512), matrices.Intent("expand", 512, 0)),
        ((512, 512), matrices.Intent("mix", 512, 0)),
    ],
)
def test_shape_is_intent(shape: tuple[int, int], expected: matrices.Intent) -> None:
    W = rng.normal(size=shape)
    assert matrices.intent(W) == expected
    if expected.kind == "compress":
        lost = matrices.null_space(W)
        assert len(lost) == expected.lost
        np.testing.assert_allclose(W @ lost.T, 0, atol=1e-10)
    if expected.kind == "mix":
        x = rng.normal(size=512)
        np.testing.assert_allclose(np.linalg.solve(W, W @ x), x, rtol=1e-6)


@pytest.mark.requirement("R-059")
def test_lifting_makes_red_blue_red_separable() -> None:
    x = np.array([-2.0, -1.5, -0.3, 0.0, 0.4, 1.6, 2.1])
    red = np.abs(x) > 1
    plane = matrices.separator(matrices.lift(x), red)
    assert plane is not None
    w, b = plane
    np.testing.assert_array_equal(matrices.lift(x) @ w + b > 0, red)
    assert matrices.separator(x[:, None], red) is None
    # and none exists: a cut of the line has one color on each side, whichever way it is read
    for cut in (x[:-1] + x[1:]) / 2:
        for side in (x > cut, x < cut):
            assert not np.array_equal(side, red)


@pytest.mark.requirement("R-060")
def test_singular_spectra_of_weights() -> None:
    u, v = rng.normal(size=6), rng.normal(size=4)
    weights = {"healthy": rng.normal(size=(6, 4)), "planted": np.outer(u, v), "zero": np.zeros((3, 3))}
    spectra = matrices.singular_spectra(weights)
    assert list(spectra) == list(weights)
    for name, spectrum in spectra.items():
        assert np.all(np.diff(spectrum.values) <= 0) and len(spectrum.values) == min(weights[name].shape)
        assert la.norm(spectrum.values) == pytest.approx(la.frobenius(weights[name]), rel=1e-12)
    assert [spectra[name].rank for name in weights] == [4, 1, 0]
    assert spectra["planted"].values[0] == pytest.approx(la.norm(u) * la.norm(v), rel=1e-12)
    assert spectra["planted"].condition == math.inf
    # the extremes bound how much a gradient can grow or shrink on its way back
    back = la.norm(weights["healthy"] @ la.unit(rng.normal(size=4)))
    assert spectra["healthy"].values[-1] <= back <= spectra["healthy"].values[0]
    values = spectra["healthy"].values
    assert spectra["healthy"].condition == pytest.approx(values[0] / values[-1])


@pytest.mark.parametrize(
    ("error", "bad", "message"),
    [
        (ShapeError, lambda: matrices.determinant(np.ones((2, 3))), r"determinant: got shape \(2, 3\)"),
        (ShapeError, lambda: matrices.determinant([1, 2]), "must be a matrix"),
        (ShapeError, lambda: matrices.eigen(np.ones((2, 3))), "eigen: .*must be square"),
        (ShapeError, lambda: matrices.signed_area(np.ones((4, 3))), "corners of size 3"),
        (ShapeError, lambda: matrices.separator(np.ones((4, 1)), [True]), "4 points"),
        (ShapeError, lambda: matrices.power_apply(np.eye(2), [1, 2, 3], 2), r"\(2, 2\), vector \(3,\)"),
        (ConfigError, lambda: matrices.power_apply([[1, 1], [0, 1]], [1, 1], 3), "must be a basis"),
        (ShapeError, lambda: matrices.singular_spectra({"head.W": [1, 2]}), "head.W: got shape"),
    ],
)
def test_bad_input(error: type[Exception], bad: Callable[[], object], message: str) -> None:
    with pytest.raises(error, match=message):
        bad()
