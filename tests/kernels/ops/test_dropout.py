"""Dropout in C++: the mask of `keep_mask`, to the bit; collected only where the extension was built."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.random import key

KEY = key("dropout", 3, 2**64 - 1, 5, seed=2**63 + 7)
extension = native.kernels()
native_forward, native_backward = cr.ops.dropout.native


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 65, 257, 50_000])
def test_the_mask_and_the_values_are_those_of_the_reference(n: int, isa: str) -> None:
    assert extension.set_isa(isa)
    x, dy = np.random.default_rng(n).normal(size=(2, n)).astype(np.float32)
    want, (keep, scale) = cr.ops.dropout.forward(x, p=0.3, key=KEY)
    for threads in (1, 2, 3, 8):
        native.set_threads(threads)
        y, saved = native_forward(x, p=0.3, key=KEY)
        assert saved[0].dtype == bool and saved[1] == scale
        np.testing.assert_array_equal(saved[0], keep)
        np.testing.assert_array_equal(y, want)
        (dx,) = native_backward(dy, saved, (True,))
        np.testing.assert_array_equal(dx, *cr.ops.dropout.backward(dy, saved, (True,)))


@pytest.mark.parametrize("p", [1e-12, 0.5, 1 - 2**-32, 1 - 2**-40])
def test_every_p(p: float) -> None:
    x = np.ones((8, 33), np.float32)
    _, (keep, _) = native_forward(x, p=p, key=KEY)
    np.testing.assert_array_equal(keep, cr.ops.keep_mask(x.shape, p, KEY))


def test_wrong_arrays_are_refused() -> None:
    x, keep = np.ones(6, np.float32), np.empty(6, bool)
    with pytest.raises(ValueError, match="keep has 5 elements, expected 6"):
        extension.dropout_forward(x.copy(), keep[:5], x, KEY, 1, 1.0)
    with pytest.raises(TypeError):
        extension.dropout_forward(x.copy(), keep.view(np.uint8), x, KEY, 1, 1.0)
    with pytest.raises(TypeError):
        extension.dropout_backward(np.empty(6), keep, x, 1.0)
