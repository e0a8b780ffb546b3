"""Linear layer: both weight layouts, the three gradients, and the Jacobians they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from tests.vectors import vector


def run(x: Array, W: Array, b: Array, dy: Array, **options: Any) -> dict[str, Array]:
    leaves = [Tensor(a, requires_grad=True, dtype=np.float64) for a in (x, W, b)]
    y = ops.linear(*leaves, **options)
    y.backward(dy)
    dx, dW, db = (leaf.grad for leaf in leaves)
    return {"Y": y.data, "dW": dW, "db": db, "dX": dx}


@pytest.mark.requirement("R-019", "R-345")
def test_the_three_gradients_in_both_layouts() -> None:
    v = vector("der-linear-backward")
    X, W, b, dY = (np.array(v.inputs[name]) for name in ("X", "W", "b", "grad"))
    v.check(run(X, W, b, dY, layout="in_out"))
    got = run(X, W.T, b, dY)  # (out, in), the default: same outputs, transposed weight gradient
    v.check(got | {"dW": got["dW"].T})


@pytest.mark.requirement("R-345")
def test_column_convention() -> None:
    """For one input vector: dW = G xᵀ, db = G, dx = Wᵀ G."""
    rng = np.random.default_rng(0)
    W, x, b, g = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=3), rng.normal(size=3)
    got = run(x, W, b, g)
    np.testing.assert_allclose(got["Y"], W @ x + b, rtol=1e-14)
    np.testing.assert_allclose(got["dW"], np.outer(g, x), rtol=1e-14)
    np.testing.assert_allclose(got["dX"], W.T @ g, rtol=1e-14)
    np.testing.assert_array_equal(got["db"], g)


@pytest.mark.requirement("R-346")
def test_jacobians_of_one_output_at_a_time() -> None:
    """E-000-02: dy/dW is an m×m×n tensor, unfolded the sparse m×mn matrix; dy/db = I, dy/dx = W."""
    m, n = 3, 2
    rng = np.random.default_rng(0)
    x, W, b, g = np.array([2.0, 5.0]), rng.normal(size=(m, n)), rng.normal(size=m), np.array([1.0, -1.0, 4.0])
    rows = [run(x, W, b, unit) for unit in np.eye(m)]  # the gradient of output i is row i of each Jacobian
    T = np.stack([row["dW"] for row in rows])
    np.testing.assert_array_equal(T, np.einsum("ik,j->ikj", np.eye(m), x))
    sparse = np.zeros((m, m * n))
    for i in range(m):
        sparse[i, i * n : (i + 1) * n] = x
    np.testing.assert_array_equal(T.reshape(m, m * n), sparse)
    np.testing.assert_array_equal(np.stack([row["db"] for row in rows]), np.eye(m))
    np.testing.assert_array_equal(np.stack([row["dX"] for row in rows]), W)
    dW = run(x, W, b, g)["dW"]
    np.testing.assert_allclose(dW, np.einsum("i,ikj->kj", g, T), rtol=1e-14)
    np.testing.assert_allclose(dW.reshape(-1), g @ sparse, rtol=1e-14)


@given(lead=st.lists(st.integers(0, 3), max_size=3), sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_any_leading_axes(lead: list[int], sizes: tuple[int, int]) -> None:
    n, m = sizes
    rng = np.random.default_rng(0)
    x, W, b, dy = (rng.normal(size=s) for s in ((*lead, n), (m, n), (m,), (*lead, m)))
    got = run(x, W, b, dy)
    np.testing.assert_allclose(got["Y"], x @ W.T + b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got["dX"], dy @ W, rtol=1e-12, atol=1e-12)
    dY, X = dy.reshape(-1, m), x.reshape(-1, n)
    np.testing.assert_allclose(got["dW"], np.einsum("rm,rn->mn", dY, X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got["db"], dY.sum(0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ops.linear(x, W), x @ W.T, rtol=1e-12, atol=1e-12)


def test_input_that_is_a_transposed_view() -> None:
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(4, 3, 2)).transpose(2, 1, 0), rng.normal(size=(5, 4))
    np.testing.assert_allclose(ops.linear(x, W), x @ W.T, rtol=1e-14)


def test_frozen_weights_get_no_gradient() -> None:
    x = Tensor(np.ones((2, 3)), requires_grad=True)
    W, b = Tensor(np.ones((4, 3))), Tensor(np.ones(4))
    ops.linear(x, W, b).sum().backward()
    np.testing.assert_array_equal(x.grad, np.full((2, 3), 4.0))
    assert W.grad is None and b.grad is None


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, 3), (4, 5), (4,)), r"linear: x has 3 features, W \(4, 5\) takes 5 \(must be equal\)"),
        (((2, 5), (4, 5), (5,)), r"linear: b is \(5,\), W \(4, 5\) gives 4 features \(b must be \(4,\)\)"),
        (((2, 5), (5,), (5,)), r"linear: x is \(2, 5\), W is \(5,\) \(x must have an axis, W two\)"),
        (((), (4, 5), (4,)), r"linear: x is \(\)"),
    ],
)
def test_wrong_shapes(shapes: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        ops.linear(*(np.ones(s) for s in shapes))


def test_unknown_layout() -> None:
    with pytest.raises(ConfigError, match=r"linear: layout is 'rows' \(must be one of out_in, in_out\)"):
        ops.linear(np.ones(2), np.ones((2, 2)), layout="rows")
