"""Matrix product: both loop orders, every shape NumPy accepts, gradients by the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from chainrule import ops
from chainrule.autograd import Tensor, gradcheck
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ShapeError
from tests.vectors import vector

PRODUCT = mutually_broadcastable_shapes(signature="(n?,k),(k,m?)->(n?,m?)", max_dims=2, max_side=3)


@pytest.mark.requirement("R-045")
@pytest.mark.parametrize("source", ["001-matvec", "004-1.3-matvec"])
def test_rows_and_columns_give_the_product(source: str) -> None:
    rows, columns = vector(f"{source}-rows"), vector(f"{source}-columns")
    A, x = np.array(rows.inputs["A"], dtype=float), np.array(rows.inputs["x"], dtype=float)
    by_rows = [ops.matmul(row, x).item() for row in A]
    terms = [column * entry for column, entry in zip(A.T, x, strict=True)]
    rows.check(by_rows)
    columns.check(terms)
    for layout in ("C", "F"):
        product = ops.matmul(np.asarray(A, order=layout), x)
        rows.check(product)
        np.testing.assert_array_equal(product, sum(terms))


@pytest.mark.requirement("R-046")
def test_product_is_associative_and_distributive_but_not_commutative() -> None:
    v = vector("004-1.3-noncommuting")
    A, B = (np.array(v.inputs[name], dtype=float) for name in "AB")
    v.check({"AB": ops.matmul(A, B), "BA": ops.matmul(B, A)})
    rng = np.random.default_rng(0)
    P, Q, R, S = (rng.normal(size=s) for s in ((2, 3), (3, 4), (4, 5), (3, 4)))
    np.testing.assert_allclose(ops.matmul(ops.matmul(P, Q), R), ops.matmul(P, ops.matmul(Q, R)), rtol=1e-12)
    np.testing.assert_allclose(ops.matmul(P, Q + S), ops.matmul(P, Q) + ops.matmul(P, S), rtol=1e-12)


@given(shapes=PRODUCT, seed=st.integers(0, 99))
def test_any_shapes(shapes: Any, seed: int) -> None:
    """Values as NumPy's; gradients as the definition c_ij = Σ a_il b_lj says, element by element."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=s) for s in shapes.input_shapes)
    s, t = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    c = s @ t
    np.testing.assert_allclose(c.data, a @ b, rtol=1e-12, atol=1e-12)
    dc = rng.normal(size=c.shape)
    c.backward(dc)
    np.testing.assert_allclose(s.grad, by_definition(a, b, dc, 0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(t.grad, by_definition(a, b, dc, 1), rtol=1e-10, atol=1e-12)


def by_definition(a: Array, b: Array, dc: Array, which: int) -> Array:
    """Σ dc · (a @ b) is linear in each operand: its slope along each unit direction is the gradient."""
    grad = np.zeros((a, b)[which].shape)
    for place in np.ndindex(grad.shape):
        unit = np.zeros_like(grad)
        unit[place] = 1
        grad[place] = np.sum(dc * (unit @ b if which == 0 else a @ unit))
    return grad


@pytest.mark.parametrize("layout", ["C", "F"])
def test_memory_layout_changes_nothing(layout: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(5, 4))
    np.testing.assert_allclose(
        ops.matmul(np.asarray(a, order=layout), np.asarray(b, order=layout)), a @ b, rtol=1e-14
    )
    gradcheck(ops.matmul, a.T.copy().T, b[:, ::2])


def test_one_matrix_for_the_whole_batch() -> None:
    """The flattened product and the batched one are the same up to rounding."""
    rng = np.random.default_rng(2)
    a, b, dc = rng.normal(size=(4, 6, 5)), rng.normal(size=(5, 3)), rng.normal(size=(4, 6, 3))
    s, t = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    (s @ t).backward(dc)
    np.testing.assert_allclose(t.grad, (a.swapaxes(1, 2) @ dc).sum(0), rtol=1e-12)
    np.testing.assert_allclose(s.grad, dc @ b.T, rtol=1e-12)


@pytest.mark.parametrize(
    "a, b, message",
    [
        ((2, 3), (4, 5), r"matmul: a is \(2, 3\), b is \(4, 5\) \(inner sizes 3 and 4 must be equal\)"),
        ((3,), (4,), r"inner sizes 3 and 4"),
        ((2, 2, 3), (3, 3, 5), r"batch axes \(2,\) and \(3,\) must broadcast"),
        ((), (3,), r"matmul: a is \(\), b is \(3,\) \(both must have at least one axis"),
    ],
)
def test_wrong_shapes(a: Shape, b: Shape, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        ops.matmul(np.ones(a), np.ones(b))
