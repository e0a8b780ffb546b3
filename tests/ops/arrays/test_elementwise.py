"""Elementwise arithmetic: the rules of calculus, broadcasting, dtypes, and the edges of each domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import chainrule as cr
from chainrule import ops
from chainrule.autograd import Op, Tensor, gradcheck
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError


def slopes(fn: Callable[..., Any], *inputs: Any) -> list[Array]:
    """The gradient of Σ fn(inputs) with respect to each input."""
    tensors = [Tensor(np.asarray(x, dtype=np.float64), requires_grad=True) for x in inputs]
    y = fn(*tensors)
    y.backward(np.ones(y.shape))
    return [t.grad for t in tensors]


POINTS = np.array([0.3, 1.0, 2.7])

PRIMITIVES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "x^3": (lambda x: x**3, lambda x: 3 * x**2),
    "x^-2": (lambda x: x**-2, lambda x: -2 * x**-3),
    "x^0.5": (lambda x: x**0.5, lambda x: 0.5 * x**-0.5),
    "2^x": (lambda x: 2.0**x, lambda x: 2**x * np.log(2)),
    "exp": (ops.exp, np.exp),
    "ln": (ops.log, lambda x: 1 / x),
    "sqrt": (ops.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "sin": (ops.sin, np.cos),
    "cos": (ops.cos, lambda x: -np.sin(x)),
    "neg": (ops.neg, lambda x: -np.ones_like(x)),
}


@pytest.mark.requirement("R-012")
@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive_at_three_points(name: str) -> None:
    fn, derivative = PRIMITIVES[name]
    for x in POINTS:
        gradcheck(fn, np.array([x]))
    np.testing.assert_allclose(slopes(fn, POINTS)[0], derivative(POINTS), rtol=1e-14)


@pytest.mark.requirement("R-013")
def test_product_and_quotient_rule() -> None:
    def f(x: Any) -> Any:
        return ops.sin(x)

    def g(x: Any) -> Any:
        return ops.exp(x) + x * x

    for x in POINTS:
        gradcheck(lambda t: f(t) * g(t), np.array([x]))
        gradcheck(lambda t: f(t) / g(t), np.array([x]))
        gradcheck(lambda t: f(t) * g(t) ** -1, np.array([x]))
    (df,), (dg,) = slopes(f, POINTS), slopes(g, POINTS)
    fx, gx = np.sin(POINTS), np.exp(POINTS) + POINTS**2
    (product,), (quotient,) = slopes(lambda t: f(t) * g(t), POINTS), slopes(lambda t: f(t) / g(t), POINTS)
    np.testing.assert_allclose(product, df * gx + fx * dg, rtol=1e-13)
    np.testing.assert_allclose(quotient, (df * gx - fx * dg) / gx**2, rtol=1e-13)


@given(shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3), data=st.data())
def test_broadcast_gradient_is_the_gradient_of_explicit_copies(shapes: Any, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = (rng.normal(size=s) + 3 for s in shapes.input_shapes)
    dy = rng.normal(size=shapes.result_shape)
    op: Op = data.draw(st.sampled_from([ops.add, ops.sub, ops.mul, ops.div, ops.pow]))

    def run(a: Array, b: Array) -> tuple[Array, Array]:
        s, t = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
        op(s, t).backward(dy)
        return s.grad, t.grad

    da, db = run(a, b)
    full_a, full_b = run(np.broadcast_to(a, dy.shape), np.broadcast_to(b, dy.shape))
    for got, full in ((da, full_a), (db, full_b)):
        # The adjoint of copying: paired with any direction u, got·u = full·(copies of u).
        u = rng.normal(size=got.shape)
        paired = np.sum(full * np.broadcast_to(u, full.shape))
        np.testing.assert_allclose(np.sum(got * u), paired, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_python_numbers_do_not_change_the_dtype(dtype: Any) -> None:
    x = Tensor(np.array([0.5, 2.0], dtype=dtype), requires_grad=True)
    y = 2 ** (1 - (3 / x + 1.5) * 2) - x**2 / 4
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.dtype == dtype


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ShapeError, match=r"add: cannot take shapes \(2, 3\), \(4,\)"):
        ops.add(np.ones((2, 3)), np.ones(4))


def test_edges_of_the_domains_are_silent_limits() -> None:
    with np.errstate(all="raise", under="ignore"):
        assert ops.exp(np.array(1000.0)) == np.inf
        assert ops.exp(np.array(-1000.0)) == 0
        assert ops.log(np.array(0.0)) == -np.inf
        assert np.isnan(ops.log(np.array(-1.0)))


def test_power_of_zero_and_of_negative_numbers() -> None:
    x = np.array([0.0, -2.0])
    np.testing.assert_array_equal(slopes(lambda t: t**2, x)[0], [0.0, -4.0])
    dx, dp = slopes(lambda t, p: t**p, [0.0, -2.0, 2.0], [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(dx, [0.0, 12.0, 12.0])
    np.testing.assert_allclose(dp, [0.0, 0.0, 8 * np.log(2)], rtol=1e-15)


def test_x_to_the_power_zero_is_flat_at_zero() -> None:
    x = cr.Tensor([0.0, 2.0], requires_grad=True)
    (x**0).sum().backward()
    np.testing.assert_array_equal(x.grad, [0.0, 0.0])
