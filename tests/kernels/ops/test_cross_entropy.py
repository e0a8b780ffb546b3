"""Softmax + cross-entropy in C++ against float64; collected only where the extension was built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd.types import Array

extension = native.kernels()
op = cr.ops.cross_entropy
native_forward, native_backward = op.native


def case(N: int, V: int, spread: float = 3.0) -> tuple[Array, Array]:
    rng = np.random.default_rng((N, V))
    return (spread * rng.normal(size=(N, V))).astype(np.float32), rng.integers(0, V, size=N)


def kernel(logits: Array, dy: Any = 1.0, **constants: Any) -> list[Array]:
    """loss, peak, total, gradient"""
    loss, saved = native_forward(logits, **constants)
    (dx,) = native_backward(np.asarray(dy, np.float32), saved, (True,))
    return [np.asarray(loss), *saved[1:3], dx]


def exact(logits: Array, dy: Any = 1.0, **constants: Any) -> list[Array]:
    loss, saved = op.forward(logits.astype(np.float64), **constants)
    (dx,) = op.backward(np.asarray(dy, np.float64), saved, (True,))
    return [np.asarray(loss), *saved[1:3], dx]


def check(got: list[Array], want: list[Array]) -> None:
    for a, b in zip(got, want, strict=True):
        assert a.dtype == np.float32 and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=5e-6, atol=2e-6 * max(1.0, np.abs(b).max(initial=0)))


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("V", [1, 7, 16, 65, 257, 4096, 9001])  # the last are more than a block
@pytest.mark.parametrize("N", [1, 7, 65])
def test_equals_numpy(N: int, V: int, isa: str) -> None:
    assert extension.set_isa(isa)
    logits, ids = case(N, V)
    weights = np.random.default_rng(0).uniform(size=N)
    check(kernel(logits, targets=ids), exact(logits, targets=ids))
    options: dict[str, Any] = {"label_smoothing": 0.1, "exclude_true": V > 16, "weights": weights}
    check(kernel(logits, targets=ids, **options), exact(logits, targets=ids, **options))
    each = {"ignore_index": int(ids[0]), "reduction": "none"}
    check(kernel(logits, weights, targets=ids, **each), exact(logits, weights, targets=ids, **each))


@pytest.mark.parametrize("where", [0, 5000, 8999])
def test_a_maximum_in_any_block(where: int) -> None:
    logits, ids = case(3, 9000)
    logits[:, where] = [20, 40, 1e4]
    check(kernel(logits, targets=ids, label_smoothing=0.1), exact(logits, targets=ids, label_smoothing=0.1))


@pytest.mark.parametrize("offset", [1e4, -1e4])
def test_a_common_offset_of_ten_thousand(offset: float) -> None:
    logits, ids = case(4, 5000)
    shifted = logits + np.float32(offset)
    check(kernel(shifted, targets=ids, label_smoothing=0.2), exact(shifted, targets=ids, label_smoothing=0.2))


def test_masked_logits() -> None:
    logits, ids = case(3, 9000)
    logits[:, :8500] = -np.inf  # two blocks of nothing, then something
    ids[:] = 8700
    loss, peak, total, dx = kernel(logits, targets=ids)
    check([loss, peak, total, dx], exact(logits, targets=ids))
    assert (dx[:, :8500] == 0).all()
    assert kernel(logits, targets=ids - 8700)[0] == np.inf
    nothing = np.full((1, 20), -np.inf, np.float32)
    loss, peak, total, _ = kernel(nothing, targets=[3])
    assert (loss, peak, total) == (np.inf, 0, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite(bad: float) -> None:
    logits, ids = case(3, 65)
    logits[1, 64] = bad
    losses, _, _, dx = kernel(logits, np.ones(3), targets=ids, reduction="none")
    assert np.isnan(losses[1]) and np.isnan(dx[1]).all()
    assert np.isfinite(losses[[0, 2]]).all() and np.isfinite(dx[[0, 2]]).all()
    loss, _, _, dx = kernel(logits, targets=ids, weights=[1.0, 0.0, 1.0])  # it does not count
    assert np.isfinite(loss) and np.isfinite(dx).all() and not dx[1].any()


def test_no_rows() -> None:
    loss, peak, _, dx = kernel(np.zeros((0, 7), np.float32), targets=np.zeros(0, int))
    assert loss == 0 and peak.shape == (0,) and dx.shape == (0, 7)


@pytest.mark.parametrize("shape", [(300, 257), (5, 50257), (4096, 65)])
def test_the_same_bits_for_any_number_of_threads(shape: tuple[int, int]) -> None:
    logits, ids = case(*shape)
    native.set_threads(1)
    want = [a.tobytes() for a in kernel(logits, targets=ids, label_smoothing=0.1)]
    for n in (2, 3, 8):
        native.set_threads(n)
        assert [a.tobytes() for a in kernel(logits, targets=ids, label_smoothing=0.1)] == want, n


def test_distributions_take_the_reference() -> None:
    logits, _ = case(4, 33)
    targets = np.random.default_rng(1).dirichlet(np.ones(33), size=4)
    check(kernel(logits, targets=targets), exact(logits, targets=targets))


def test_the_extension_refuses_what_does_not_fit() -> None:
    logits, ids = case(4, 6)
    room = np.empty((3, 4), np.float32)
    with pytest.raises(ValueError, match="scale has 3 elements, expected 4"):
        extension.cross_entropy_forward(*room, logits, ids, room[0, :3], 1.0, 0.0)
    with pytest.raises(ValueError, match="target holds 6, expected 0 to 5"):
        extension.cross_entropy_forward(*room, logits, np.array([0, 1, 6, 2]), room[0], 1.0, 0.0)
    with pytest.raises(TypeError):
        extension.cross_entropy_forward(*room, logits, ids.astype(np.int32), room[0], 1.0, 0.0)
    with pytest.raises(TypeError):
        extension.cross_entropy_forward(*room, logits.astype(np.float64), ids, room[0], 1.0, 0.0)


def test_targets_on_the_diagonal_are_those_of_numpy() -> None:
    ids, own = np.array([0, 3, -1, 0]), np.empty(4, np.int64)
    extension.diagonal_targets(own, ids, -1)
    np.testing.assert_array_equal(own, cr.ops.diagonal_targets(ids, -1))
    with pytest.raises(ValueError, match="own has 4 elements, expected 3"):
        extension.diagonal_targets(own, ids[:3].copy(), -1)
