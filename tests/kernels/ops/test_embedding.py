"""Embedding in C++ against NumPy; collected only where the extension was built."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd.types import Array, Into

extension = native.kernels()
op = cr.ops.embedding
native_forward, native_backward = op.native


def case(V: int, C: int, *shape: int) -> tuple[Array, Array, Array]:
    """W, ids, dy"""
    rng = np.random.default_rng((V, C))
    W, dy = (rng.normal(size=size).astype(np.float32) for size in ((V, C), (*shape, C)))
    return W, rng.integers(0, V, size=shape), dy


def in_order(W: Array, ids: Array, dy: Array) -> Array:
    dW = np.zeros_like(W)
    for i, d in zip(ids.ravel(), dy.reshape(-1, W.shape[1]), strict=True):
        dW[i] += d
    return dW


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("C", [1, 7, 16, 65, 257])
@pytest.mark.parametrize("shape", [(0,), (1,), (7, 9), (3, 2, 50)])
def test_equals_numpy_to_the_bit(shape: tuple[int, ...], C: int, isa: str) -> None:
    assert extension.set_isa(isa)
    W, ids, dy = case(11, C, *shape)
    y, saved = native_forward(W, ids=ids)
    np.testing.assert_array_equal(y, W[ids])
    (dW,) = native_backward(dy, saved, (True,))
    np.testing.assert_array_equal(dW, in_order(W, ids, dy))


def test_the_same_bits_for_any_number_of_threads() -> None:
    W, ids, dy = case(65, 384, 2048)
    want = in_order(W, ids, dy)
    for n in (1, 2, 3, 8):
        native.set_threads(n)
        y, saved = native_forward(W, ids=ids)
        np.testing.assert_array_equal(y, W[ids])
        np.testing.assert_array_equal(native_backward(dy, saved, (True,))[0], want)


def test_the_gradient_is_added_where_it_belongs() -> None:
    W, ids, dy = case(11, 33, 20)
    _, saved = native_forward(W, ids=ids)
    place = np.ones_like(W)
    (dW,) = native_backward(dy, saved, (Into(place),))
    assert dW is place
    np.testing.assert_allclose(place, 1 + in_order(W, ids, dy), rtol=1e-5, atol=1e-5)


def test_not_a_number_stays_in_its_row() -> None:
    W, ids, dy = case(11, 33, 20)
    dy[3, 32] = np.nan
    _, saved = native_forward(W, ids=ids)
    (dW,) = native_backward(dy, saved, (True,))
    assert np.isnan(dW[ids[3], 32]) and np.isnan(dW).sum() == 1


def test_the_extension_refuses_what_does_not_fit() -> None:
    W, ids, dy = case(11, 7, 20)
    with pytest.raises(ValueError, match="ids holds 11, expected 0 to 10"):
        extension.gather_rows(np.empty_like(dy), W, ids + 11 - ids[0])
    with pytest.raises(ValueError, match="dy has 133 elements, expected 140"):
        extension.scatter_add_rows(W, dy[1:], ids)
    with pytest.raises(TypeError):
        extension.gather_rows(np.empty_like(dy), W.astype(np.float64), ids)
