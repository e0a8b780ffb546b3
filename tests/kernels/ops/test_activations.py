"""GELU, SiLU, SwiGLU, sigmoid, tanh and ReLU in C++ against the reference in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Op

OPS = [cr.ops.gelu, cr.ops.gelu_tanh, cr.ops.silu, cr.ops.swiglu, cr.ops.sigmoid, cr.ops.tanh, cr.ops.relu]
extension = native.kernels()


def run(op: Op, n: int, *, native: bool = True, inputs: np.ndarray | None = None) -> list[np.ndarray]:
    """Output and gradients: by the kernels in float32, or by the reference in float64."""
    values = np.random.default_rng(n).normal(scale=3, size=(op.arity + 1, n)).astype(np.float32)
    if inputs is not None:
        values[:] = inputs
    forward, backward = op.native if native else (op.forward, op.backward)
    *args, dy = values if native else values.astype(np.float64)
    y, saved = forward(*args)
    return [y, *backward(dy, saved, (True,) * op.arity)]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("op", OPS, ids=repr)
def test_kernels_equal_the_reference_in_float64(op: Op, isa: str) -> None:
    assert extension.set_isa(isa)
    for n in (0, 1, 7, 16, 65, 257, 1500):
        for got, want in zip(run(op, n), run(op, n, native=False), strict=True):
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, want, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("op", OPS, ids=repr)
def test_the_same_bits_for_any_number_of_threads(op: Op) -> None:
    native.set_threads(1)
    want = [a.tobytes() for a in run(op, 100_001)]
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert [a.tobytes() for a in run(op, 100_001)] == want


@pytest.mark.parametrize("op", OPS, ids=repr)
def test_large_numbers_stay_finite_and_nan_stays_nan(op: Op) -> None:
    for size in (1e4, 1e14, 1e18, 3e38) if op.arity == 1 else (1e4, 1e12):
        for sign in (1, -1):
            y, *grads = run(op, 33, inputs=np.array([[sign * size]] * op.arity + [[1]], np.float32))
            want = op.forward(*np.full((op.arity, 33), sign * size))[0]
            np.testing.assert_allclose(y, want, rtol=1e-6)
            assert all(np.isfinite(g).all() for g in grads)
    assert np.isnan(run(op, 33, inputs=np.float32(np.nan))[0]).all()


@pytest.mark.parametrize("x", [1e14, -1e14, 1e19, -1e19, 3e38, -3e38])
def test_gelu_tanh_has_a_gradient_for_every_finite_number(x: float) -> None:
    """x² overflows here, and 0 · ∞ would be NaN."""
    for forward, backward in (cr.ops.gelu_tanh.native, (cr.ops.gelu_tanh.forward, cr.ops.gelu_tanh.backward)):
        y, saved = forward(np.full(3, x, np.float32))
        np.testing.assert_array_equal(y, np.float32(max(x, 0)))
        np.testing.assert_array_equal(backward(np.ones(3, np.float32), saved, (True,))[0], x > 0)


def test_wrong_arrays_are_refused() -> None:
    x = np.ones(6, np.float32)
    with pytest.raises(ValueError, match="y has 5 elements, expected 6"):
        extension.gelu_forward(x[:5].copy(), x)
    with pytest.raises(ValueError, match="dy has 5 elements, expected 6"):
        extension.gelu_backward(x.copy(), x, x[:5])
    with pytest.raises(ValueError, match="dup has 5 elements, expected 6"):
        extension.swiglu_backward(x.copy(), x[:5], x, x, x)
    for wrong in (x.astype(np.float64), x[::2]):
        with pytest.raises(TypeError):
            extension.gelu_forward(np.empty_like(wrong), wrong)
