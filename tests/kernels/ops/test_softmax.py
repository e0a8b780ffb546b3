"""Softmax and log-softmax in C++ against the reference in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Op

OPS = [cr.ops.softmax, cr.ops.log_softmax]
extension = native.kernels()


def inputs(*shape: int) -> np.ndarray:
    """x and dy"""
    return np.random.default_rng(shape).normal(scale=3, size=(2, *shape)).astype(np.float32)


def kernel(op: Op, x: np.ndarray, dy: np.ndarray) -> list[np.ndarray]:
    y, saved = op.native[0](x)
    return [y, *op.native[1](dy, saved, (True,))]


def reference(op: Op, x: np.ndarray, dy: np.ndarray) -> list[np.ndarray]:
    y, saved = op.forward(x.astype(np.float64))
    return [y, *op.backward(dy.astype(np.float64), saved, (True,))]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("op", OPS, ids=repr)
@pytest.mark.parametrize("C", [1, 7, 16, 65, 257])
def test_kernels_equal_the_reference_in_float64(op: Op, C: int, isa: str) -> None:
    assert extension.set_isa(isa)
    for R in (0, 1, 7, 65):
        for got, want in zip(kernel(op, *inputs(R, C)), reference(op, *inputs(R, C)), strict=True):
            assert got.dtype == np.float32 and got.shape == (R, C)
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=5e-6)


@pytest.mark.parametrize("op", OPS, ids=repr)
def test_the_same_bits_for_any_number_of_threads(op: Op) -> None:
    x, dy = inputs(1031, 65)
    native.set_threads(1)
    want = [a.tobytes() for a in kernel(op, x, dy)]
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert [a.tobytes() for a in kernel(op, x, dy)] == want


@pytest.mark.parametrize("op", OPS, ids=repr)
def test_masked_rows_infinities_and_nan(op: Op) -> None:
    """Row by row: some masked, all masked, one left, a NaN, an infinity, both large signs."""
    x, dy = inputs(6, 37)
    x[0, ::2] = -np.inf
    x[1] = -np.inf
    x[2, 1:] = -np.inf
    x[3, 5] = np.nan
    x[4, 36] = np.inf
    x[5] = np.where(x[5] > 0, 1e4, -1e4)
    with np.errstate(invalid="ignore"):
        want, saved = op.forward(x)
    y, dx = kernel(op, x, dy)
    np.testing.assert_allclose(y, want, rtol=2e-6, atol=1e-7)
    assert np.array_equal(y == 0, want == 0), "a masked entry is exactly 0"
    if op is cr.ops.softmax:
        np.testing.assert_allclose(dx, op.backward(dy, saved, (True,))[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", OPS, ids=repr)
def test_other_axes_are_left_to_the_reference(op: Op) -> None:
    x, dy = inputs(3, 4, 5)
    for axis in range(-3, 3):
        y, saved = op.native[0](x, axis=axis)
        want, kept = op.forward(x, axis=axis)
        np.testing.assert_allclose(y, want, rtol=2e-6, atol=1e-6)
        got = op.native[1](dy, saved, (True,))[0]
        np.testing.assert_allclose(got, op.backward(dy, kept, (True,))[0], rtol=1e-5, atol=2e-6)


def test_wrong_arrays_are_refused() -> None:
    x = np.ones((4, 6), np.float32)
    with pytest.raises(ValueError, match="y has 18 elements, expected 24"):
        extension.softmax_forward(x[:3].copy(), x)
    with pytest.raises(TypeError):
        extension.softmax_forward(np.empty((6, 4)), x)
    with pytest.raises(TypeError):
        extension.softmax_forward(np.empty((6, 4), np.float32), x.T)
