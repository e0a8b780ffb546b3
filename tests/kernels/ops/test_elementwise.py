"""Sums and products of large arrays in C++: the very bits of NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Op
from chainrule.ops.arrays.elementwise import LARGE

extension = native.kernels()
OPS = [cr.ops.add, cr.ops.mul]


def inputs(n: int) -> np.ndarray:
    """a, b, dy"""
    values = np.random.default_rng(n).normal(size=(3, n)).astype(np.float32)
    values[:, : min(n, 3)] = np.array([np.nan, np.inf, 1e4], np.float32)[: min(n, 3)]
    return values


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("n", [0, 1, 7, 16, 65, 257])
def test_kernels_equal_numpy(n: int, isa: str) -> None:
    assert extension.set_isa(isa)
    a, b, y = inputs(n)
    extension.add(y, a, b)
    np.testing.assert_array_equal(y, a + b)
    extension.mul(y, a, b)
    np.testing.assert_array_equal(y, a * b)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("op", OPS, ids=repr)
def test_large_arrays_by_any_number_of_threads(op: Op, threads: int) -> None:
    native.set_threads(threads)
    a, b, dy = inputs(LARGE + 33)
    y, saved = op.native[0](a, b)
    want, kept = op.forward(a, b)
    np.testing.assert_array_equal(y, want)
    for needs in ((True, True), (True, False), (False, True)):
        for got, wanted in zip(op.native[1](dy, saved, needs), op.backward(dy, kept, needs), strict=True):
            assert got is wanted is None or np.array_equal(got, wanted, equal_nan=True)


@pytest.mark.parametrize("op", OPS, ids=repr)
def test_other_shapes_are_left_to_numpy(op: Op) -> None:
    a, b, dy = (v.reshape(512, -1) for v in inputs(LARGE))
    y, saved = op.native[0](a, b[0])
    np.testing.assert_array_equal(y, op.forward(a, b[0])[0])
    np.testing.assert_array_equal(op.native[1](dy, saved, (True, True))[1].shape, b[0].shape)
