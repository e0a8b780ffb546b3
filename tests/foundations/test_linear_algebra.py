"""Vector spaces, lengths, angles and products, against the worked numbers and their laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations import linear_algebra as la
from chainrule.foundations import matrices
from tests.vectors import vector

finite = st.floats(-100, 100, allow_subnormal=False)
vectors3 = hnp.arrays(np.float64, 3, elements=finite)
rng = np.random.default_rng(0)


@pytest.mark.requirement("R-040")
@given(vectors3, vectors3, vectors3, finite, finite)
def test_vectors_form_a_space(u: np.ndarray, v: np.ndarray, w: np.ndarray, a: float, b: float) -> None:
    errors = la.vector_space_errors(u, v, w, a, b)
    assert len(errors) == 9
    assert max(errors.values()) < 1e-8, errors


@pytest.mark.requirement("R-040")
@pytest.mark.parametrize(
    ("operation", "broken"),
    [
        ({"add": lambda u, v: np.abs(u + v)}, {"associative", "zero", "distributive"}),
        ({"add": lambda u, v: u - v}, {"associative", "commutative", "inverse", "distributive"}),
        ({"add": lambda u, v: np.append(u, v)}, {"closed under addition", "commutative", "zero", "inverse"}),
        ({"scale": lambda a, v: v / 0 if a else v}, {"closed under scaling"}),
        ({"scale": lambda a, v: np.abs(a) * v}, {"inverse", "distributive"}),
        ({"scale": lambda a, v: a * v + 1}, {"inverse", "distributive", "scaling associative", "one"}),
    ],
)
def test_what_is_no_space_is_told(operation: dict[str, Callable[..., np.ndarray]], broken: set[str]) -> None:
    with np.errstate(all="ignore"):
        errors = la.vector_space_errors([1.0, -2.0], [-3.0, 0.5], [0.7, 4.0], 2.0, -1.5, **operation)
    assert {name for name, error in errors.items() if error > 1e-9} >= broken


@pytest.mark.requirement("R-041")
def test_square_and_shift_are_not_linear() -> None:
    v = vector("004-1.1-square-not-linear")
    scaled, times = la.scaling_probe(lambda x: x**2, v.inputs["x"], 2.0)
    v.check({"f2x": scaled, "2fx": times})
    assert not la.is_linear(lambda x: x**2, 1)

    v = vector("004-1.1-shift-not-linear")
    at_zero, _ = la.scaling_probe(lambda x: x + 1, v.inputs["x"], 0.0)
    v.check({"f0": at_zero})
    assert not la.is_linear(lambda x: x + 1, 1)


@pytest.mark.requirement("R-041")
def test_every_matrix_is_linear() -> None:
    for shape in ((3, 3), (2, 5), (5, 1)):
        W = rng.normal(size=shape)
        assert la.is_linear(lambda x, W=W: W @ x, shape[1])


@pytest.mark.requirement("R-042")
def test_combination_and_dependence() -> None:
    v = vector("004-1.1-dependence")
    v1, v2 = v.inputs["vectors"]
    v3 = la.linear_combination(v.inputs["coeffs"], [v1, v2])
    v.check(v3)
    assert la.is_independent_set([v1, v2]) and la.is_basis([v1, v2])
    assert not la.is_independent_set([v1, v2, v3])
    assert not la.is_basis([v1])
    assert la.is_independent_set([v1]) and not la.is_independent_set([[0.0, 0.0]])
    assert matrices.rank([v1, v2, v3]) == 2  # the dimension of what they span
    np.testing.assert_array_equal(la.standard_basis(3), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert la.is_basis(la.standard_basis(4))


@pytest.mark.requirement("R-043")
@pytest.mark.parametrize("name", ["004-1.1-basis-change", "004-1.5.3-eigencoords"])
def test_coordinates_in_another_basis(name: str) -> None:
    v = vector(name)
    c = la.coordinates(v.inputs["v"], v.inputs["basis"])
    v.check(c)
    np.testing.assert_allclose(la.linear_combination(c, v.inputs["basis"]), v.inputs["v"], rtol=1e-12)


@pytest.mark.requirement("R-044")
def test_dot_product_by_lengths_and_angle() -> None:
    for u, v in rng.normal(size=(100, 2, 5)):
        theta = la.angle(u, v)
        assert abs(la.dot(u, v) - la.norm(u) * la.norm(v) * math.cos(theta)) < 1e-12
    assert la.angle([1, 0], [2, 0]) == 0 and la.dot([1, 0], [2, 0]) == 2
    assert la.angle([1, 0], [0, 3]) == math.pi / 2 and la.dot([1, 0], [0, 3]) == 0
    assert la.angle([1, 0], [-4, 0]) == math.pi and la.dot([1, 0], [-4, 0]) == -4


@pytest.mark.requirement("R-045")
@pytest.mark.parametrize("document", ["001", "004-1.3"])
def test_matvec_in_two_orders(document: str) -> None:
    rows, columns = vector(f"{document}-matvec-rows"), vector(f"{document}-matvec-columns")
    A, x = rows.inputs["A"], rows.inputs["x"]
    rows.check(la.matvec(A, x, rows.inputs["order"]))
    terms = la.matvec_terms(columns.inputs["A"], columns.inputs["x"])
    columns.check(terms)
    np.testing.assert_array_equal(terms.sum(axis=0), la.matvec(A, x, "columns"))


@pytest.mark.requirement("R-045")
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 7, 3), (5, 1, 6)])
def test_both_orders_give_one_product(shape: tuple[int, int, int]) -> None:
    m, n, p = shape
    A, B = rng.normal(size=(m, n)), rng.normal(size=(n, p))
    for stored in (A, np.asfortranarray(A)):
        for order in ("rows", "columns"):
            np.testing.assert_allclose(la.matvec(stored, B[:, 0], order), A @ B[:, 0], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(la.matmul(stored, B, order), A @ B, rtol=1e-12, atol=1e-14)


@pytest.mark.requirement("R-045")
def test_which_order_is_faster_depends_on_the_layout() -> None:
    timings = la.time_matvec(n=300, repeats=2)
    for t in timings:
        print(f"matvec by {t.order:8} {t.layout:13} {t.seconds * 1e3:6.2f} ms")
    seconds = {(t.layout, t.order): t.seconds for t in timings}
    assert len(seconds) == 4 and min(seconds.values()) > 0  # which is faster is for a benchmark to say


@pytest.mark.requirement("R-046")
def test_products_do_not_commute() -> None:
    v = vector("004-1.3-noncommuting")
    A, B = v.inputs["A"], v.inputs["B"]
    v.check({"AB": la.matmul(A, B), "BA": la.matmul(B, A)})


@pytest.mark.requirement("R-046")
def test_products_associate_and_distribute() -> None:
    A, B, C, D = (rng.normal(size=s) for s in ((3, 4), (4, 2), (2, 5), (4, 2)))
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(la.matmul(la.matmul(A, B), C), la.matmul(A, la.matmul(B, C)), **near)
    np.testing.assert_allclose(la.matmul(A, B + D), la.matmul(A, B) + la.matmul(A, D), **near)


@pytest.mark.requirement("R-047")
def test_transposes_and_symmetry() -> None:
    A, B, C = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(3, 4))
    np.testing.assert_array_equal(A.T.T, A)
    np.testing.assert_allclose(la.matmul(A, B).T, la.matmul(B.T, A.T), rtol=1e-12)
    np.testing.assert_array_equal((A + C).T, A.T + C.T)
    S = rng.normal(size=(4, 4))
    assert la.is_symmetric(S + S.T) and not la.is_symmetric(S)
    assert la.is_symmetric(np.zeros((2, 2)))


@pytest.mark.requirement("R-048")
@pytest.mark.parametrize(
    "name", ["004-1.4-length", "004-1.4.1-norm-1", "004-1.4.1-norm-2", "004-1.4.1-norm-inf"]
)
def test_worked_norms(name: str) -> None:
    v = vector(name)
    v.check(la.norm(v.inputs["v"], float(v.inputs["p"])))


@pytest.mark.requirement("R-048")
def test_three_norms_and_their_limit() -> None:
    v = vector("004-1.4.1-three-norms")
    x = v.inputs["v"]
    v.check({"1": la.norm(x, 1), "2": la.norm(x), "inf": la.norm(x, math.inf)})
    high = [la.norm(x, p) for p in (1, 2, 4, 16, 64, 1000)]
    assert all(a >= b for a, b in pairwise(high))
    assert high[-1] == pytest.approx(la.norm(x, math.inf), rel=1e-6)
    assert la.norm([3e200, 4e200]) == pytest.approx(5e200)
    assert la.norm([]) == la.norm([0.0, 0.0], 3) == 0


@pytest.mark.requirement("R-048", "R-049")
@given(vectors3, vectors3, vectors3, finite, st.sampled_from([1, 1.5, 2, 7, math.inf]))
def test_norm_and_distance_axioms(u: np.ndarray, v: np.ndarray, w: np.ndarray, a: float, p: float) -> None:
    near = 1e-9 * (1 + la.norm(u, 1) + la.norm(v, 1))
    assert la.norm(v, p) >= 0 and (la.norm(v, p) == 0) == (not v.any())
    assert la.norm(a * v, p) == pytest.approx(abs(a) * la.norm(v, p), rel=1e-9, abs=1e-9)
    assert la.norm(u + v, p) <= la.norm(u, p) + la.norm(v, p) + near
    assert la.distance(u, w, p) <= la.distance(u, v, p) + la.distance(v, w, p) + near
    assert la.distance(u, v, p) == la.distance(v, u, p) and la.distance(u, u, p) == 0


@pytest.mark.requirement("R-048")
def test_two_functions_that_are_no_norm() -> None:
    v = vector("004-1.4-not-a-norm-shift")
    x = np.array(v.inputs["v"])
    v.check({"f2v": la.norm(2 * x) + 1, "2fv": 2 * (la.norm(x) + 1)})
    v = vector("004-1.4-not-a-norm-sum")
    v.check(sum(v.inputs["v"]))
    assert la.norm(v.inputs["v"], 1) == 2


@pytest.mark.requirement("R-049")
def test_euclidean_and_manhattan_distance() -> None:
    assert la.distance([1, 1], [4, 5]) == 5 and la.distance([1, 1], [4, 5], p=1) == 7


@pytest.mark.requirement("R-050")
def test_unit_vector() -> None:
    v = vector("004-1.4.3-unit-vector")
    v.check(la.unit(v.inputs["v"]))
    assert la.norm(la.unit(rng.normal(size=7) * 1e-200)) == pytest.approx(1, rel=1e-12)
    with pytest.raises(ConfigError, match="unit: the zero vector has no direction"):
        la.unit([0.0, 0.0])


@pytest.mark.requirement("R-051")
def test_frobenius() -> None:
    v = vector("004-1.4.4-frobenius")
    v.check(la.frobenius(v.inputs["A"]))


@pytest.mark.parametrize(
    ("error", "bad", "message"),
    [
        (ShapeError, lambda: la.dot([1, 2], [1, 2, 3]), r"dot: shapes \(2,\) and \(3,\)"),
        (ShapeError, lambda: la.matvec([[1, 2]], [1, 2, 3]), r"matvec: matrix \(1, 2\) times vector \(3,\)"),
        (ShapeError, lambda: la.matvec_terms([[1, 2]], [1]), "matvec_terms"),
        (ShapeError, lambda: la.matmul(np.ones((2, 3)), np.ones((2, 3))), r"\(2, 3\) times \(2, 3\)"),
        (ShapeError, lambda: la.matmul([1, 2], [[1]]), r"matmul: got shape \(2,\)"),
        (ShapeError, lambda: la.linear_combination([1], [[1, 2], [3, 4]]), "1 coefficients, 2 vectors"),
        (ShapeError, lambda: la.is_symmetric(np.ones((2, 3))), "must be square"),
        (ConfigError, lambda: la.matvec([[1]], [1], "diagonal"), "order 'diagonal'"),
        (ConfigError, lambda: la.coordinates([1, 2], [[1, 2], [2, 4]]), "2 basis vectors of rank 1"),
        (ConfigError, lambda: la.norm([1, 2], 0.5), "p = 0.5"),
        (ConfigError, lambda: la.norm([1, 2], math.nan), "p = nan"),
        (ConfigError, lambda: la.angle([0, 0], [1, 0]), "angle: the zero vector"),
    ],
)
def test_bad_input(error: type[Exception], bad: Callable[[], object], message: str) -> None:
    with pytest.raises(error, match=message):
        bad()
