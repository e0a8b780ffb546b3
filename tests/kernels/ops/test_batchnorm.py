"""Batch norm in C++ against the reference in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native

extension = native.kernels()
batchnorm = cr.ops.batchnorm
ALL = (True, True, True)


def inputs(*shape: int) -> list[np.ndarray]:
    """x, gamma, beta, and the gradients of y, mean and var"""
    rng = np.random.default_rng(shape)
    C = shape[-1:]
    return [rng.normal(size=size).astype(np.float32) for size in (shape, C, C, shape, C, C)]


def run(pair: tuple, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """y, mean, var, rstd, dx, dgamma, dbeta"""
    outputs, saved = pair[0](*arrays[:3])
    return [*outputs, saved[3], *pair[1](tuple(arrays[3:]), saved, ALL)]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("C", [1, 7, 16, 65, 257])
def test_batchnorm_equals_the_reference_in_float64(C: int, isa: str) -> None:
    assert extension.set_isa(isa)
    for lead in ((2,), (65,), (3, 5, 43)):
        arrays = inputs(*lead, C)
        want = run((batchnorm.forward, batchnorm.backward), [a.astype(np.float64) for a in arrays])
        for got, wanted in zip(run(batchnorm.native, arrays), want, strict=True):
            assert got.dtype == np.float32 and got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5 * max(1.0, abs(wanted).max()))


def test_a_large_mean_does_not_cancel() -> None:
    x, gamma, beta, *_ = inputs(1000, 33)
    (_, _, var), _ = batchnorm.native[0](x + 1000, gamma, beta)
    np.testing.assert_allclose(var, (x + 1000).astype(np.float64).var(axis=0), rtol=1e-5)


def test_the_same_bits_for_any_number_of_threads() -> None:
    arrays = inputs(1031, 65)
    native.set_threads(1)
    want = [a.tobytes() for a in run(batchnorm.native, arrays)]
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert [a.tobytes() for a in run(batchnorm.native, arrays)] == want


def test_only_the_parameters() -> None:
    arrays = inputs(65, 33)
    _, saved = batchnorm.native[0](*arrays[:3])
    whole = batchnorm.native[1](tuple(arrays[3:]), saved, ALL)
    some = batchnorm.native[1](tuple(arrays[3:]), saved, (False, True, True))
    assert some[0] is None
    np.testing.assert_array_equal(some[1:], whole[1:])


def test_extremes() -> None:
    arrays = inputs(7, 33)
    assert all(np.isfinite(a).all() for a in run(batchnorm.native, [np.sign(arrays[0]) * 1e4, *arrays[1:]]))
    arrays[0][3, 5] = np.nan
    assert np.isnan(run(batchnorm.native, arrays)[0]).any(axis=0).nonzero()[0].tolist() == [5]


def test_wrong_arrays_are_refused() -> None:
    x, gamma, beta, *_ = inputs(4, 6)
    out = np.empty(6, np.float32)
    with pytest.raises(ValueError, match="var has 5 elements, expected 6"):
        extension.batchnorm_forward(np.empty_like(x), out, out[:5], out, x, gamma, beta, 1e-5, None)
    with pytest.raises(TypeError):
        extension.batchnorm_forward(
            np.empty_like(x), out, out, out, x, gamma.astype(np.float64), beta, 1e-5, None
        )
    for rows in (0, 5):
        with pytest.raises(ValueError, match=f"rows is {rows}, must be from 1 to 4"):
            count = np.array([rows])
            extension.batchnorm_forward(np.empty_like(x), out, out, out, x, gamma, beta, 1e-5, count)
    with pytest.raises(cr.DataError):
        batchnorm.native[0](x[:0], gamma, beta)
