"""Rotary positions in C++ against the reference in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native

extension = native.kernels()
rotary = cr.ops.rotary


def check(x: np.ndarray, **options: object) -> None:
    """Both passes of the kernel equal those of the reference."""
    y, saved = rotary.native[0](x, **options)
    want, kept = rotary.forward(x.astype(np.float64), **options)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)
    dx, wanted = (
        rotary.native[1](x, saved, (True,))[0],
        rotary.backward(x.astype(np.float64), kept, (True,))[0],
    )
    np.testing.assert_allclose(dx, wanted, rtol=1e-6, atol=1e-6)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("D", [2, 8, 32, 64, 130])
def test_rotary_equals_the_reference_in_float64(D: int, interleaved: bool, isa: str) -> None:
    assert extension.set_isa(isa)
    for lead in ((1,), (7,), (2, 3, 5), (0, 4), (3, 0)):
        check(normal(*lead, D), positions=np.arange(lead[-1]), interleaved=interleaved)


def test_any_strides_and_positions() -> None:
    heads = normal(2, 5, 3, 8).transpose(0, 2, 1, 3)  # (B, H, T, D)
    check(heads, positions=np.arange(5))
    check(heads[:, ::-1, ::2], positions=np.arange(3))
    check(normal(4, 8, 5).transpose(0, 2, 1), positions=np.arange(5))  # the last axis is not contiguous
    check(np.broadcast_to(normal(5, 8), (3, 5, 8)), positions=np.arange(5))
    check(heads, positions=np.arange(10).reshape(2, 1, 5))
    check(heads, positions=np.array(3))


def test_the_same_bits_for_any_number_of_threads() -> None:
    x, positions = normal(3, 1031, 34), np.arange(1031)
    native.set_threads(1)
    want = rotary.native[0](x, positions=positions)[0].tobytes()
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert rotary.native[0](x, positions=positions)[0].tobytes() == want


def test_wrong_arrays_are_refused() -> None:
    x, table = normal(2, 3, 8), normal(3, 4)
    with pytest.raises(ValueError, match="cos has 8 elements, expected 12"):
        extension.rotary(np.empty_like(x), x, table[:2], table, 1.0, False)
    with pytest.raises(ValueError, match="sin has 8 elements, expected 12"):
        extension.rotary(np.empty_like(x), x, table, table[:2], 1.0, False)
    with pytest.raises(ValueError, match="the last one even and contiguous"):
        extension.rotary(np.empty((2, 3, 4), np.float32), x[..., ::2], table, table, 1.0, False)
    with pytest.raises(TypeError):
        extension.rotary(np.empty((2, 3, 8)), x, table, table, 1.0, False)
