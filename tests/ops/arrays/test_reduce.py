"""Reductions: every axis, ties, infinities, and what cannot be reduced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from tests.vectors import vector

INF = np.inf


def grad_of(op: Any, x: Any, dy: Any = None, **options: Any) -> tuple[Array, Array]:
    leaf = Tensor(np.array(x, dtype=np.float64), requires_grad=True)
    y = op(leaf, **options)
    y.backward(np.ones(y.shape) if dy is None else dy)
    return y.data, leaf.grad


@st.composite
def reductions(draw: st.DrawFn) -> tuple[Array, Any, bool]:
    shape = draw(array_shapes(max_dims=4, max_side=3))
    axes = st.integers(-len(shape), len(shape) - 1)
    several = st.lists(axes, unique_by=lambda a: a % len(shape), max_size=len(shape)).map(tuple)
    x = np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape)
    return x, draw(st.none() | axes | several), draw(st.booleans())


@given(reductions())
def test_values_and_gradients_over_any_axis(case: tuple[Array, Any, bool]) -> None:
    x, axis, keepdims = case
    kept: Any = {"axis": axis, "keepdims": True}
    count = x.size // x.sum(**kept).size
    softmax = np.exp(x) / np.exp(x).sum(**kept)
    expected = {
        ops.sum: (np.sum(x, axis=axis, keepdims=keepdims), np.ones_like(x)),
        ops.mean: (np.mean(x, axis=axis, keepdims=keepdims), np.full_like(x, 1 / count)),
        ops.max: (np.max(x, axis=axis, keepdims=keepdims), (x == x.max(**kept)).astype(float)),
        ops.logsumexp: (np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)), softmax),
    }
    rng = np.random.default_rng(0)
    for op, (y, slope) in expected.items():
        dy = rng.normal(size=np.shape(y))
        got, dx = grad_of(op, x, dy, axis=axis, keepdims=keepdims)
        assert got.shape == np.shape(y)
        np.testing.assert_allclose(got, y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dx, slope * dy.reshape(x.sum(**kept).shape), rtol=1e-12, atol=1e-12)


def test_equal_maxima_share_the_gradient() -> None:
    y, dx = grad_of(ops.max, [[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]], [6.0, 8.0], axis=1)
    np.testing.assert_array_equal(y, [3.0, 2.0])
    np.testing.assert_array_equal(dx, [[0.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])


@pytest.mark.requirement("R-467")
def test_logsumexp_of_large_numbers() -> None:
    v = vector("der-logsumexp")
    z = np.array(v.inputs["z"])
    with np.errstate(over="raise", invalid="raise"):
        y, dz = grad_of(ops.logsumexp, z)
    v.check(y)
    np.testing.assert_allclose(dz, np.exp(z - v.recomputed), rtol=1e-12)
    with np.errstate(over="raise", invalid="raise"):
        y32 = ops.logsumexp(np.array([1e4, 1e4, -1e4], dtype=np.float32))
    assert y32.dtype == np.float32 and y32 == pytest.approx(1e4 + np.log(2), rel=1e-7)


def test_logsumexp_with_infinities() -> None:
    rows = [[-INF, -INF, -INF], [0.0, -INF, 0.0], [INF, 5.0, INF], [INF, -INF, 1e300], [1.0, 2.0, 3.0]]
    with np.errstate(all="raise", under="ignore"):
        y, dx = grad_of(ops.logsumexp, rows)
    np.testing.assert_allclose(y, [-INF, np.log(2), INF, INF, np.log(np.exp([1, 2, 3]).sum())], rtol=1e-15)
    softmax = np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum()
    np.testing.assert_allclose(dx, [[0, 0, 0], [0.5, 0, 0.5], [0.5, 0, 0.5], [1, 0, 0], softmax], rtol=1e-15)


def test_nan_is_not_hidden() -> None:
    for op in (ops.sum, ops.mean, ops.max, ops.logsumexp):
        assert np.isnan(op(np.array([1.0, np.nan, -INF]), axis=-1))


def test_reducing_nothing() -> None:
    empty = np.ones((2, 0))
    np.testing.assert_array_equal(ops.sum(empty, axis=1), [0, 0])
    np.testing.assert_array_equal(ops.logsumexp(empty), [-INF, -INF])
    with pytest.raises(ShapeError, match=r"mean: axis 1 of shape \(2, 0\) has no elements"):
        ops.mean(empty, axis=1)
    with pytest.raises(ShapeError, match=r"max: cannot take shapes \(2, 0\)"):
        ops.max(empty, axis=1)


@pytest.mark.parametrize(
    "axis, message",
    [
        (2, r"axis 2 for shape \(2, 3\) \(must be from -2 to 1\)"),
        (-3, r"axis -3 for shape \(2, 3\)"),
        ((0, 5), r"axis 5 for shape \(2, 3\)"),
        ((0, -2), r"axis \(0, -2\) for shape \(2, 3\) \(an axis must not appear twice\)"),
    ],
)
@pytest.mark.parametrize("op", [ops.sum, ops.mean, ops.max, ops.logsumexp], ids=lambda op: op.name)
def test_wrong_axis(op: Any, axis: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=f"{op.name}: {message}"):
        op(np.ones((2, 3)), axis=axis)


def test_a_number_has_no_axis() -> None:
    assert ops.sum(np.array(3.0)) == ops.max(np.array(3.0)) == ops.logsumexp(np.array(3.0), axis=None) == 3
    with pytest.raises(ShapeError, match=r"sum: axis 0 for shape \(\) \(a number has no axis\)"):
        ops.sum(np.array(3.0), axis=0)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_product_of_nothing_is_1_and_has_a_gradient(axis: int | None) -> None:
    x = Tensor(np.ones((0, 3)), requires_grad=True)
    y = ops.prod(x, axis=axis)
    assert (y == 1).all()
    y.backward(np.ones(y.shape))
    assert x.grad is not None and x.grad.shape == (0, 3)
