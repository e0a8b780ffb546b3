"""Softmax and log-softmax: the worked examples, masks, extreme logits."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops import log_softmax, softmax, softmax_jacobian
from tests.vectors import vector

INF = np.inf

logits_arrays = arrays(
    np.float64, array_shapes(max_dims=3, max_side=6), elements=st.floats(-1e4, 1e4, allow_subnormal=False)
)


def gradient(op, x, seed, **constants):
    """The gradient of op(x) for the gradient `seed` of its output."""
    x = cr.Tensor(np.array(x, dtype=np.float64), requires_grad=True)
    op(x, **constants).backward(seed)
    return x.grad


@pytest.mark.requirement("R-085")
def test_worked_examples() -> None:
    for id in ("004-3.8-softmax", "der-score-variance-numbers"):
        v = vector(id)
        v.check(softmax(np.array(v.inputs["logits"], dtype=np.float64)))


@pytest.mark.requirement("R-085", "R-467")
@given(logits_arrays)
def test_properties(x: np.ndarray) -> None:
    y = softmax(x)
    assert (y >= 0).all()
    np.testing.assert_allclose(y.sum(axis=-1), 1, rtol=1e-12)
    order = np.argsort(x, axis=-1, kind="stable")
    assert (np.diff(np.take_along_axis(y, order, axis=-1), axis=-1) >= 0).all(), "keeps the order"
    np.testing.assert_allclose(softmax(x - x[..., :1]), y, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(softmax(x.T, axis=0), y.T)


@pytest.mark.requirement("R-085")
def test_amplifies_differences_and_tends_to_argmax() -> None:
    x = np.array([1.0, 2.0, 4.0])
    sharper = [softmax(scale * x)[2] for scale in (0.0, 1.0, 2.0, 10.0, 100.0)]
    assert sharper == sorted(sharper)
    assert sharper[0] == pytest.approx(1 / 3)
    np.testing.assert_array_equal(softmax(1000 * x), [0, 0, 1])
    y = softmax(x)
    assert y[2] / y[0] == pytest.approx(np.exp(3)), "a difference of logits is a ratio of probabilities"


@pytest.mark.requirement("R-086")
def test_trains_as_a_hidden_activation_and_serves_attention() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3))
    y = (np.abs(x[:, :1]) > np.abs(x[:, 1:2])).astype(np.float64)
    W, b, U = (cr.Tensor(rng.normal(size=s), requires_grad=True) for s in ((8, 3), (8,), (1, 8)))
    losses = []
    for _ in range(300):
        loss = cr.ops.mse(cr.ops.linear(softmax(cr.ops.linear(x, W, b)), U), y)
        losses.append(loss.item())
        loss.backward()
        for p in (W, b, U):
            p.data -= 0.5 * p.grad
            p.zero_grad()
    assert losses[-1] < 0.5 * np.var(y) < 0.5 * losses[0]
    assert importlib.import_module("chainrule.ops.neural.attention").softmax is softmax


@pytest.mark.requirement("R-087")
def test_jacobian() -> None:
    v = vector("der-softmax-jacobian")
    x = np.array(v.inputs["logits"])
    J = softmax_jacobian(softmax(x))
    v.check(J)
    np.testing.assert_allclose(J, [gradient(softmax, x, row) for row in np.eye(4)], rtol=1e-12)
    assert softmax_jacobian(softmax(np.zeros((2, 3, 5), np.float32))).shape == (2, 3, 5, 5)


@pytest.mark.requirement("R-088", "R-351")
def test_backward_without_the_jacobian() -> None:
    v = vector("der-softmax-vjp")
    x, g = np.array(v.inputs["logits"]), np.array(v.inputs["grad"])
    v.check(gradient(softmax, x, g))
    np.testing.assert_allclose(gradient(softmax, x, g), softmax_jacobian(softmax(x)) @ g, rtol=1e-12)
    rows = gradient(softmax, [x, 2 * x], [g, g])
    np.testing.assert_array_equal(rows, [gradient(softmax, x, g), gradient(softmax, 2 * x, g)], "row by row")
    _, saved = softmax.forward(np.zeros((7, 11)))
    assert max(s.size for s in saved if isinstance(s, np.ndarray)) == 77, "no (V, V) matrix is kept"


@pytest.mark.requirement("R-089")
def test_clip_is_an_option_and_subtracting_the_maximum_the_default() -> None:
    v = vector("der-softmax-clip")
    x = np.array(v.inputs["logits"])
    v.check({"clip": softmax(x, clip=(-50.0, 50.0)), "max": softmax(x)})


@pytest.mark.requirement("R-089")
def test_clip_has_no_gradient_outside_and_leaves_masks_alone() -> None:
    x = np.array([60.0, 49.0, -70.0, -INF])
    y = softmax(x, clip=(-50.0, 50.0))
    dx = gradient(softmax, x, [1.0, 2.0, 3.0, 4.0], clip=(-50.0, 50.0))
    assert y[3] == 0
    assert dx[1] != 0
    np.testing.assert_array_equal(dx[[0, 2, 3]], 0)
    with pytest.raises(ConfigError, match=r"softmax: clip is \(50.0, -50.0\)"):
        softmax(x, clip=(50.0, -50.0))


@pytest.mark.requirement("R-471")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks_of_minus_infinity(dtype: type) -> None:
    v = vector("002-wei-softmax-T3")
    W = np.array(v.inputs["W"], dtype=np.float64)
    v.check(softmax(W))
    x = np.array([[1.0, -INF, 2.0], [-INF, -INF, -INF], [-INF, 5.0, -INF]], dtype=dtype)
    with np.errstate(all="raise"):
        y = softmax(x)
        t = cr.Tensor(x, requires_grad=True)
        softmax(t).backward(np.arange(9.0).reshape(3, 3))
    assert (y[np.isinf(x)] == 0).all()
    np.testing.assert_array_equal(y[1:], [[0, 0, 0], [0, 1, 0]])
    assert np.isfinite(t.grad).all()
    assert (t.grad[np.isinf(x)] == 0).all()


@pytest.mark.requirement("R-467", "R-468")
def test_log_softmax_of_extreme_logits() -> None:
    v = vector("der-logsumexp")
    z = np.array(v.inputs["z"])
    v.check((z - log_softmax(z))[0])
    for dtype in (np.float32, np.float64):
        x = np.array([[1e4, 0.0, -1e4]], dtype=dtype)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            np.testing.assert_array_equal(softmax(x), [[1, 0, 0]])
            np.testing.assert_array_equal(log_softmax(x), [[0, -1e4, -2e4]])
    far = 20 * np.array(vector("002-table1-normal100").inputs["logits"])
    assert (softmax(far)[:2] == 0).all(), "log(softmax(x)) would be infinite here"
    np.testing.assert_allclose(log_softmax(far), far - far[2], rtol=1e-15)


@given(logits_arrays)
def test_log_softmax_is_the_logarithm(x: np.ndarray) -> None:
    y = log_softmax(x)
    np.testing.assert_allclose(np.exp(y), softmax(x), rtol=1e-9, atol=1e-300)


def test_log_softmax_keeps_masks() -> None:
    x = np.array([[0.0, -INF, 0.0], [-INF, -INF, -INF]])
    with np.errstate(all="raise"):
        y = log_softmax(x)
    np.testing.assert_array_equal(y, [[-np.log(2), -INF, -np.log(2)], [-INF, -INF, -INF]])
    dx = gradient(log_softmax, x[:1], [[1.0, 0.0, 0.0]])
    np.testing.assert_allclose(dx, [[0.5, 0, -0.5]])


def test_a_bad_axis_is_named() -> None:
    with pytest.raises(ShapeError, match=r"softmax: cannot take shapes \(2, 3\)"):
        softmax(np.zeros((2, 3)), axis=2)
