"""Shape operations: values as NumPy's, gradients as the adjoint, errors that name shapes and rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, broadcastable_shapes

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError

shapes = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)


def assert_adjoint(fn: Callable[[Any], Any], x: Array) -> Array:
    """These maps are linear, so (gradient · u) must equal (dy · fn(u)) for every u. Returns fn(x)."""
    rng = np.random.default_rng(0)
    leaf = Tensor(x, requires_grad=True)
    y = fn(leaf)
    dy, u = rng.normal(size=y.shape), rng.normal(size=x.shape)
    y.backward(dy)
    np.testing.assert_allclose(np.sum(leaf.grad * u), np.sum(dy * fn(u)), rtol=1e-10, atol=1e-12)
    return y.data


def numbers(shape: tuple[int, ...]) -> Array:
    return np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)


@given(shape=shapes, data=st.data())
def test_reshape(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    divisors = [d for d in range(1, max(1, x.size) + 1) if x.size % d == 0]
    d = data.draw(st.sampled_from(divisors))
    for target in [(d, x.size // d), (-1, d), (x.size,), -1]:
        y = assert_adjoint(lambda t, s=target: ops.reshape(t, shape=s), x)
        np.testing.assert_array_equal(y, x.reshape(target))


@pytest.mark.requirement("R-047")
@given(shape=shapes, data=st.data())
def test_transpose(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    order = data.draw(st.permutations(range(x.ndim)))
    axes = tuple(a - x.ndim if data.draw(st.booleans()) else a for a in order)
    np.testing.assert_array_equal(assert_adjoint(lambda t: ops.transpose(t, axes=axes), x), x.transpose(axes))
    np.testing.assert_array_equal(assert_adjoint(ops.transpose, x), x.T)
    np.testing.assert_array_equal(ops.transpose(ops.transpose(x)), x)


@pytest.mark.requirement("R-047")
def test_transpose_identities() -> None:
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(3, 4))
    T = ops.transpose
    np.testing.assert_allclose(T(ops.matmul(A, B)), ops.matmul(T(B), T(A)), rtol=1e-13)
    np.testing.assert_array_equal(T(A + C), T(A) + T(C))
    square = rng.normal(size=(3, 3))
    assert np.array_equal(T(square + T(square)), square + T(square)), "A + Aᵀ is symmetric"
    assert not np.array_equal(T(square), square)


@given(shape=shapes, data=st.data())
def test_broadcast_to(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(data.draw(broadcastable_shapes(shape, max_dims=len(shape), max_side=1)))
    target = np.broadcast_shapes(x.shape, shape)
    y = assert_adjoint(lambda t: ops.broadcast_to(t, shape=target), x)
    np.testing.assert_array_equal(y, np.broadcast_to(x, target))


def test_broadcast_gradient_sums_the_copies() -> None:
    x = Tensor(np.array([[1.0], [2.0]]), requires_grad=True)
    ops.broadcast_to(x, shape=(2, 2, 3)).backward(numbers((2, 2, 3)))
    np.testing.assert_array_equal(x.grad, [[1 + 2 + 3 + 7 + 8 + 9], [4 + 5 + 6 + 10 + 11 + 12]])


@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4), axis=st.integers(-3, 2))
def test_concat(sizes: list[int], axis: int) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=np.where(np.arange(3) == axis % 3, n, 2)) for n in sizes]
    leaves = [Tensor(p, requires_grad=True) for p in parts]
    y = ops.concat(*leaves, axis=axis)
    np.testing.assert_array_equal(y.data, np.concatenate(parts, axis))
    dy = rng.normal(size=y.shape)
    y.backward(dy)
    np.testing.assert_array_equal(np.concatenate([leaf.grad for leaf in leaves], axis), dy)


def test_concat_of_one_tensor_with_itself_adds_up() -> None:
    x = Tensor(np.array([1.0, 2.0]), requires_grad=True)
    ops.concat(x, x).backward(np.array([1.0, 2.0, 30.0, 40.0]))
    np.testing.assert_array_equal(x.grad, [31.0, 42.0])


def test_where_gives_the_gradient_to_the_chosen_side_only() -> None:
    a = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = Tensor([[10.0], [20.0]], requires_grad=True)
    condition = np.array([[True, False, True], [False, False, True]])
    y = ops.where(condition, a, b)
    np.testing.assert_array_equal(y.data, [[1, 10, 3], [20, 20, 3]])
    y.backward(numbers((2, 3)))
    np.testing.assert_array_equal(a.grad, [1.0, 0.0, 3.0 + 6.0])
    np.testing.assert_array_equal(b.grad, [[2.0], [4.0 + 5.0]])


def test_where_stops_a_bad_gradient() -> None:
    """The gradient of the unchosen side is 0, not 0 · inf."""
    a, b = Tensor(np.zeros(2), requires_grad=True), Tensor(np.zeros(2), requires_grad=True)
    ops.where([True, False], a, b).backward(np.array([np.inf, np.nan]))
    np.testing.assert_array_equal(a.grad, [np.inf, 0])
    np.testing.assert_array_equal(b.grad, [0, np.nan])


WRONG = {
    "reshape: (3, 4) has 12 elements, (2, 5) has 10 (must be equal)": lambda x: ops.reshape(x, shape=(2, 5)),
    "(5, -1) has 5 (one size may be -1, the others must divide)": lambda x: ops.reshape(x, shape=(5, -1)),
    "(-1, -1) has 1 (one size may be -1": lambda x: ops.reshape(x, shape=(-1, -1)),
    "transpose: axes (0, 0) for shape (3, 4) (each axis must": lambda x: ops.transpose(x, axes=(0, 0)),
    "transpose: axes (0, 2) for shape (3, 4)": lambda x: ops.transpose(x, axes=(0, 2)),
    "broadcast_to: (3, 4) to (3, 5) (from the right": lambda x: ops.broadcast_to(x, shape=(3, 5)),
    "concat: (3, 4) and (2, 4) along axis 1 (other sizes": lambda x: ops.concat(x, x[:2], axis=1),
    "concat: (3, 4) and (4,) along axis 0": lambda x: ops.concat(x, x[0]),
    "concat: axis 2 for shape (3, 4) (must be one of its 2 axes)": lambda x: ops.concat(x, x, axis=2),
    "concat: got no arrays": lambda x: ops.concat(),
    "where: cannot take shapes (3,), (3, 4), (3, 4)": lambda x: ops.where([True, False, True], x, x),
}


@pytest.mark.parametrize("message", WRONG)
def test_errors_name_the_shapes_and_the_rule(message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        WRONG[message](np.ones((3, 4)))
