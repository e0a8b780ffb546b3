"""Output layer + cross-entropy in C++ against float64; collected only where the extension was built."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd.types import Array, Into

extension = native.kernels()
module = importlib.import_module("chainrule.ops.losses.linear_cross_entropy")
op = cr.ops.linear_cross_entropy
native_forward, native_backward = op.native


def case(N: int, V: int, C: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng((N, V, C))
    x, W = (rng.normal(size=size).astype(np.float32) for size in ((N, C), (V, C)))
    return x, W / np.float32(C**0.5), rng.integers(0, V, size=N)


def kernel(x: Array, W: Array, ids: Array, **constants: Any) -> list[Array]:
    """loss, dx, dW"""
    loss, saved = native_forward(x, W, targets=ids, **constants)
    dW = np.zeros_like(W)
    grads = native_backward(np.float32(1).reshape(()), saved, (True, Into(dW), False))
    assert grads[1] is dW and grads[2] is None
    return [np.asarray(loss), *grads[:2]]


def exact(x: Array, W: Array, ids: Array, **constants: Any) -> list[Array]:
    loss, saved = op.forward(x.astype(np.float64), W.astype(np.float64), targets=ids, **constants)
    grads = op.backward(np.float64(1).reshape(()), saved, (True, True, False))
    return [np.asarray(loss), *grads[:2]]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("keep", [0, 1 << 26])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 65, 16), (65, 257, 33), (257, 7, 65), (3, 5000, 7)])
def test_equals_numpy(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], keep: int, isa: str
) -> None:
    assert extension.set_isa(isa)
    monkeypatch.setattr(module, "CHUNK", 4096)
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setattr(module, "KEEP", keep)
    arrays = case(*shape)
    for constants in ({}, {"label_smoothing": 0.1, "ignore_index": int(arrays[2][0]), "reduction": "sum"}):
        for got, want in zip(kernel(*arrays, **constants), exact(*arrays, **constants), strict=True):
            assert got.dtype == np.float32 and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=5e-6 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("keep", [0, 1 << 26])
def test_the_same_bits_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
    monkeypatch.setattr(module, "CHUNK", 1 << 16)
    monkeypatch.setattr(module, "KEEP", keep)
    arrays = case(200, 1031, 65)
    native.set_threads(1)
    want = [a.tobytes() for a in kernel(*arrays)]
    for n in (2, 3, 8):
        native.set_threads(n)
        assert [a.tobytes() for a in kernel(*arrays)] == want, f"{n} threads"


def test_needs() -> None:
    x, W, ids = case(7, 33, 5)
    _, saved = native_forward(x, W, targets=ids)
    one = np.float32(1).reshape(())
    both = native_backward(one, saved, (True, True, False))
    dx, nothing, _ = native_backward(one, saved, (True, False, False))
    assert nothing is None and dx.tobytes() == both[0].tobytes()
    nothing, dW, _ = native_backward(one, saved, (False, True, False))
    assert nothing is None and dW.tobytes() == both[1].tobytes()


def test_the_extension_refuses_sizes_that_do_not_fit() -> None:
    x, W, ids = case(7, 33, 5)
    room = np.empty((3, 7), np.float32)
    with pytest.raises(ValueError, match="w has 132 elements, expected 165"):
        extension.linear_cross_entropy_forward(*room, x, W[:, :4].copy(), ids, room[0], 1.0, 0.0, 4, 0)
    with pytest.raises(ValueError, match="chunk must be at least 1"):
        extension.linear_cross_entropy_forward(*room, x, W, ids, room[0], 1.0, 0.0, 0, 0)


def test_rows_that_are_not_finite_stay_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, ids = case(37, 65, 16)
    want, saved = native_forward(x, W, targets=ids, reduction="none")
    x[3], x[20], ids[30] = np.nan, np.inf, -1
    loss, saved = native_forward(x, W, targets=ids, reduction="none", ignore_index=-1)
    dx, *_ = native_backward(np.ones(37, np.float32), saved, (True, False, False))
    assert list(np.flatnonzero(~np.isfinite(loss))) == [3, 20] and loss[30] == 0
    assert list(np.flatnonzero(~np.isfinite(dx).all(axis=1))) == [3, 20] and not dx[30].any()
    others = np.isfinite(loss) & (ids != -1)
    np.testing.assert_array_equal(loss[others], want[others])
    x[30] = np.inf  # a row that does not count may hold anything
    loss, saved = native_forward(x, W, targets=ids, reduction="none", ignore_index=-1)
    dx, *_ = native_backward(np.ones(37, np.float32), saved, (True, False, False))
    assert loss[30] == 0 and not dx[30].any()
