"""RMS norm in C++ against the reference in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd.types import Into

extension = native.kernels()
rmsnorm = cr.ops.rmsnorm
native_forward, native_backward = rmsnorm.native


def inputs(*shape: int) -> tuple[np.ndarray, ...]:
    """x, gamma, dy"""
    rng = np.random.default_rng(shape)
    return tuple(rng.normal(size=size).astype(np.float32) for size in (shape, shape[-1:], shape))


def kernel(x: np.ndarray, gamma: np.ndarray, dy: np.ndarray) -> list[np.ndarray]:
    y, saved = native_forward(x, gamma)
    assert saved[0] is x and saved[1] is gamma
    return [y, saved[2], *native_backward(dy, saved, (True, True))]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("C", [1, 7, 16, 65, 257])
def test_rmsnorm_equals_the_reference_in_float64(C: int, isa: str) -> None:
    assert extension.set_isa(isa)
    for lead in ((), (0,), (1,), (65,), (2, 3, 43)):
        x, gamma, dy = inputs(*lead, C)
        y, saved = rmsnorm.forward(x.astype(np.float64), gamma.astype(np.float64))
        wanted = [y, saved[2], *rmsnorm.backward(dy.astype(np.float64), saved, (True, True))]
        for got, want in zip(kernel(x, gamma, dy), wanted, strict=True):
            assert got.dtype == np.float32 and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


def test_the_same_bits_for_any_number_of_threads() -> None:
    arrays = inputs(1031, 65)
    native.set_threads(1)
    want = [a.tobytes() for a in kernel(*arrays)]
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert [a.tobytes() for a in kernel(*arrays)] == want


@pytest.mark.parametrize("needs", [(True, False), (False, True), (False, False)])
def test_needs_skips_and_changes_nothing(needs: tuple[bool, ...]) -> None:
    x, gamma, dy = inputs(65, 33)
    _, saved = native_forward(x, gamma)
    whole, some = native_backward(dy, saved, (True, True)), native_backward(dy, saved, needs)
    for need, part, full in zip(needs, some, whole, strict=True):
        assert part.tobytes() == full.tobytes() if need else part is None


def test_a_gradient_with_a_place_is_added_there() -> None:
    x, gamma, dy = inputs(65, 33)
    _, saved = native_forward(x, gamma)
    place = np.ones(33, np.float32)
    _, dgamma = native_backward(dy, saved, (False, Into(place)))
    assert dgamma is place
    np.testing.assert_allclose(place, 1 + native_backward(dy, saved, (False, True))[1], rtol=1e-6)


def test_extremes() -> None:
    x, gamma, dy = inputs(3, 33)
    for y in kernel(np.sign(x) * np.float32(1e4), gamma, dy):
        assert np.isfinite(y).all()
    x[1, 4] = np.nan
    assert np.isnan(kernel(x, gamma, dy)[0]).any(axis=-1).tolist() == [False, True, False]


def test_wrong_arrays_are_refused() -> None:
    x, gamma, _ = inputs(4, 6)
    rstd = np.empty(4, np.float32)
    with pytest.raises(ValueError, match="rstd has 3 elements, expected 4"):
        extension.rmsnorm_forward(np.empty_like(x), rstd[:3], x, gamma, 1e-6)
    with pytest.raises(TypeError):
        extension.rmsnorm_forward(np.empty_like(x), rstd, x, gamma.astype(np.float64), 1e-6)


def test_a_slice_has_the_bits_of_its_copy() -> None:
    """The rows behind a soft prompt, and the gradient of a part."""
    x, gamma, dy = inputs(3, 7, 33)
    cut, slope = x[:, 2:], dy[:, 2:]
    y, saved = cr.ops.rmsnorm.run_forward([cut, gamma], {})
    assert saved[0].flags.c_contiguous  # by the kernel
    found = [y, *cr.ops.rmsnorm.run_backward(slope, saved, (True, True))]
    y, saved = native_forward(cut.copy(), gamma)
    wanted = [y, *native_backward(slope.copy(), saved, (True, True))]
    assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]
