"""Pooling in C++ against the reference in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native

extension = native.kernels()
pool = cr.ops.pool
native_forward, native_backward = pool.native


def inputs(B: int, T: int, C: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, dy and the mask"""
    rng = np.random.default_rng((B, T, C))
    mask = np.arange(T) < rng.integers(1, T + 1, size=(B, 1))
    return rng.normal(size=(B, T, C)).astype(np.float32), rng.normal(size=(B, C)).astype(np.float32), mask


def kernel(x: np.ndarray, dy: np.ndarray, mask: np.ndarray, kind: str) -> list[np.ndarray]:
    y, saved = native_forward(x, mask=mask, kind=kind)
    return [y, *native_backward(dy, saved, (True,))]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("kind", ["mean", "last"])
def test_pooling_equals_the_reference_in_float64(kind: str, isa: str) -> None:
    assert extension.set_isa(isa)
    for shape in ((0, 3, 4), (1, 1, 1), (3, 7, 5), (2, 65, 16), (5, 9, 257)):
        x, dy, mask = inputs(*shape)
        y, saved = pool.forward(x.astype(np.float64), mask=mask, kind=kind)
        wanted = [y, *pool.backward(dy.astype(np.float64), saved, (True,))]
        for got, want in zip(kernel(x, dy, mask, kind), wanted, strict=True):
            assert got.dtype == np.float32 and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["mean", "last"])
def test_the_same_bits_for_any_number_of_threads(kind: str) -> None:
    arrays = inputs(13, 31, 65)
    native.set_threads(1)
    want = [a.tobytes() for a in kernel(*arrays, kind)]
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert [a.tobytes() for a in kernel(*arrays, kind)] == want


def test_masks_are_checked() -> None:
    """A replay has no other check."""
    x, dy, mask = inputs(2, 3, 4)
    y, dx = np.empty_like(dy), np.empty_like(x)
    with pytest.raises(ValueError, match="no token in row 1"):
        extension.pool_forward(y, x, mask & [[True], [False]], False)
    behind = np.array([[True, True, True], [False, True, True]])
    extension.pool_backward(dx, dy, behind, False)
    with pytest.raises(ValueError, match="padding before a token in row 1"):
        extension.pool_backward(dx, dy, behind, True)
    with pytest.raises(ValueError, match="x has 24 elements, expected 16"):
        extension.pool_forward(y, x, behind[:, :2].copy(), False)
