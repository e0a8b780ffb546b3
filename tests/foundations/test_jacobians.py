"""Jacobians, their layout, and the chain rule as their product."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations import jacobians
from tests.vectors import vector

rng = np.random.default_rng(0)


def worked(x: np.ndarray) -> np.ndarray:
    return np.array([x[0] ** 2 + x[1], x[0] * x[1]])


@pytest.mark.requirement("R-034")
def test_worked_jacobian() -> None:
    v = vector("004-2.5.7-jacobian")
    x, dx = np.array(v.inputs["x"], float), np.array(v.inputs["dx"])
    J = jacobians.jacobian(worked, x)
    step = jacobians.linear_prediction(worked, x, dx)
    got = {"y": worked(x), "J": J, "y_new": worked(x + dx)}
    v.check(got | {"predicted": step.predicted, "actual": step.actual})
    np.testing.assert_allclose(step.error, [0.01, 0.02], rtol=1e-6)


@pytest.mark.requirement("R-034")
def test_error_of_the_linear_prediction_is_quadratic() -> None:
    x, dx = np.array([0.3, -0.7]), np.array([0.02, 0.01])

    def f(x: np.ndarray) -> np.ndarray:
        return np.array([np.sin(x[0] * x[1]), np.exp(x[0]) - x[1] ** 3])

    full = jacobians.linear_prediction(f, x, dx)
    half = jacobians.linear_prediction(f, x, dx / 2)
    np.testing.assert_allclose(full.error / half.error, 4, rtol=0.05)


@pytest.mark.requirement("R-034", "R-035")
def test_rows_are_outputs_and_columns_inputs() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return np.array([x[0] * x[1], x[2] ** 2])

    x = np.array([2.0, 3.0, 5.0])
    J = jacobians.jacobian(f, x)
    assert J.shape == (2, 3)
    np.testing.assert_allclose(J, [[3, 2, 0], [0, 0, 10]], atol=1e-8)
    dx = np.full(3, 1e-4)
    np.testing.assert_allclose(J @ dx, f(x + dx) - f(x), atol=1e-7)


@pytest.mark.requirement("R-036")
def test_flattening_is_row_major() -> None:
    x = np.array([[11.0, 12.0], [21.0, 22.0]])
    assert jacobians.flatten(x).tolist() == [11, 12, 21, 22]
    np.testing.assert_array_equal(jacobians.fold([11, 12, 21, 22], (2, 2)), x)


@pytest.mark.requirement("R-036")
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_fold_inverts_flatten(shape: list[int]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(jacobians.fold(jacobians.flatten(x), shape), x)


@pytest.mark.requirement("R-036")
def test_scalar_by_matrix_has_the_shape_of_the_matrix() -> None:
    W = rng.normal(size=(3, 2))
    J = jacobians.jacobian(lambda W: (W**2).sum(), W)
    assert J.shape == W.shape
    np.testing.assert_allclose(J, 2 * W, rtol=1e-8)


@pytest.mark.requirement("R-036")
def test_vector_by_matrix_has_the_output_axis_first() -> None:
    m, n = 3, 2
    x, g = np.array([2.0, 5.0]), np.array([1.0, -1.0, 4.0])
    W = rng.normal(size=(m, n))
    J = jacobians.jacobian(lambda W: W @ x, W)
    assert J.shape == (m, m, n)
    np.testing.assert_allclose(J, np.einsum("ij,k->ijk", np.eye(m), x), atol=1e-9)
    np.testing.assert_allclose(jacobians.vjp(J, g), np.outer(g, x), atol=1e-8)
    flat = jacobians.jacobian_matrix(lambda W: W @ x, W)
    assert flat.shape == (m, m * n)
    np.testing.assert_allclose(jacobians.fold(flat[1], (m, n)), J[1], atol=0)


@pytest.mark.requirement("R-018")
def test_backward_is_multiplication_by_the_transposed_jacobian() -> None:
    v = vector("004-2.5.8-backprop")
    x, J = np.array(v.inputs["x"], float), np.array(v.inputs["J"])
    h = J @ x
    grad_h = jacobians.jacobian(lambda h: h @ h, h)
    v.check({"h": h, "L": h @ h, "grad_h": grad_h, "grad_x": jacobians.vjp(J, grad_h)})
    np.testing.assert_allclose(jacobians.jacobian(lambda x: J @ x, x), J, rtol=1e-9)


@pytest.mark.requirement("R-028")
def test_chain_rule_probe() -> None:
    v = vector("004-2.3-chain")
    probe = jacobians.chain_rule_probe(
        lambda x: 3 * x + 1, lambda u: u**2, float(v.inputs["x"]), v.inputs["dx"]
    )
    assert probe.dy_dx == pytest.approx(probe.dy_du * probe.du_dx, rel=1e-12)
    check = jacobians.chain_rule_check([lambda x: 3 * x + 1, lambda u: u**2], float(v.inputs["x"]))
    got = dict(zip(("u", "y", "u1", "y1", "du_dx", "dy_du", "dy_dx"), probe, strict=True))
    v.check(got | {"analytic": check.product.item()})


@pytest.mark.requirement("R-029")
def test_amplifications_multiply() -> None:
    v = vector("004-2.3-amplification")
    a, b = v.inputs["factors"]
    check = jacobians.chain_rule_check([lambda x: a * x, lambda u: b * u], 0.4)
    assert [link.item() for link in check.links] == pytest.approx([a, b])
    v.check(check.product.item(), rtol=1e-9)
    assert check.total.item() == pytest.approx(6)


@pytest.mark.requirement("R-033")
def test_chain_rule_sums_over_intermediate_variables() -> None:
    def y(x: np.ndarray) -> np.ndarray:
        return np.array([np.sin(x[0]) * x[1], x[0] ** 2])

    def z(y: np.ndarray) -> np.ndarray:
        return np.array([y[0] * y[1] + np.exp(y[1])])

    x = np.array([0.7, -1.2])
    check = jacobians.chain_rule_check([y, z], x)
    assert check.error < 1e-8
    dz, dy = check.links[1][0], check.links[0]
    np.testing.assert_allclose(check.total[0], dz[0] * dy[0] + dz[1] * dy[1], rtol=1e-7)


def test_chain_rule_check_sees_a_broken_chain() -> None:
    """The check compares two computations: a function that answers differently each time must not pass."""
    calls = iter(range(1000))
    check = jacobians.chain_rule_check([lambda x: x * (1 + 0.1 * next(calls)), np.sin], 0.5)
    assert check.error > 1e-3


def test_bad_input() -> None:
    with pytest.raises(ShapeError, match=r"fold: 4 entries into shape \(3, 2\) \(must be 6\)"):
        jacobians.fold([1, 2, 3, 4], (3, 2))
    with pytest.raises(ShapeError, match=r"vjp: J \(3, 2\), dy \(2,\)"):
        jacobians.vjp(np.ones((3, 2)), [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"linear_prediction: shapes \(2,\) and \(1,\)"):
        jacobians.linear_prediction(worked, [1.0, 2.0], [0.1])
    with pytest.raises(ConfigError, match="does not change"):
        jacobians.chain_rule_probe(lambda x: 1.0, lambda u: u, 0.0, 0.1)
    with pytest.raises(ConfigError, match="step 0"):
        jacobians.jacobian(worked, [1.0, 2.0], h=0.0)
