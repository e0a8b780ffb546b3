"""The C++ attention against its NumPy reference in float64; collected only where the extension was built."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.ops import attention, packed_attention
from chainrule.random import key

ALL = (True, True, True)
DROPPED = {"dropout": 0.25, "key": key("dropout", 3, seed=1)}
extension = native.kernels()
native_forward, native_backward = attention.native


def inputs(
    T: int, S: int, D: int, Dv: int, *, B: int = 1, H: int = 2, Hk: int | None = None
) -> list[np.ndarray]:
    """q, k, v, dy in float32"""
    rng = np.random.default_rng((T, S, D, Dv))
    shapes = [(B, H, T, D), (B, Hk or H, S, D), (B, Hk or H, S, Dv), (B, H, T, Dv)]
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def kernel(q: Any, k: Any, v: Any, dy: Any, **options: Any) -> list[np.ndarray]:
    """o, lse, dq, dk, dv"""
    o, saved = native_forward(q, k, v, **options)
    assert saved[0] is q and saved[3] is o
    return [o, saved[4], *native_backward(dy, saved, ALL)]


def exact(q: Any, k: Any, v: Any, dy: Any, **options: Any) -> list[np.ndarray]:
    o, saved = attention.forward(*(x.astype(np.float64) for x in (q, k, v)), **options)
    return [o, saved[4], *attention.backward(dy.astype(np.float64), saved, ALL)]


def check(arrays: list[np.ndarray], **options: Any) -> None:
    for got, want in zip(kernel(*arrays, **options), exact(*arrays, **options), strict=True):
        assert got.dtype == np.float32 and got.shape == want.shape
        if want.size:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=3e-6 * max(3.0, abs(want).max()))


def bits(arrays: list[np.ndarray]) -> list[bytes]:
    return [a.tobytes() for a in arrays]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("D, Dv", [(1, 1), (7, 16), (33, 7), (64, 64)])
@pytest.mark.parametrize("T, S", [(1, 1), (1, 257), (7, 65), (65, 7), (65, 65), (257, 400), (300, 257)])
def test_attention_equals_numpy(T: int, S: int, D: int, Dv: int, isa: str) -> None:
    assert extension.set_isa(isa)
    for causal in (False, True):
        check(inputs(T, S, D, Dv), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "mask",
    [(2, 1, 1, 217), (1, 4, 65, 217), (65, 217), (65, 1), (217,), (1,)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_masks_broadcast(mask: tuple[int, ...], causal: bool) -> None:
    arrays = inputs(65, 217, 9, 16, B=2, H=4, Hk=2)
    values = np.random.default_rng(1).normal(size=mask).astype(np.float32)
    check(arrays, mask=values > -0.8, causal=causal)
    check(arrays, mask=values, causal=causal)
    check(arrays, mask=np.where(values > 0.8, -np.inf, values), causal=causal)


@pytest.mark.parametrize("T, S", [(7, 7), (65, 130), (200, 200)])
@pytest.mark.parametrize("H, Hk", [(4, 1), (6, 3)])
def test_grouped_heads_and_dropout(H: int, Hk: int, T: int, S: int) -> None:
    arrays = inputs(T, S, 16, 20, B=2, H=H, Hk=Hk)
    check(arrays, causal=True)
    check(arrays, causal=True, **DROPPED)
    check(arrays, mask=np.arange(S) % 3 != 1, scale=0.3, **DROPPED)


def test_any_number_of_axes_and_any_strides() -> None:
    q, k, v, dy = inputs(9, 9, 8, 8, B=6, H=4)
    want = kernel(q, k, v, dy, causal=True)
    batched = [x.reshape(2, 3, *x.shape[1:]) for x in (q, k, v, dy)]
    for got, expected in zip(kernel(*batched, causal=True), want, strict=True):
        assert got.reshape(expected.shape).tobytes() == expected.tobytes()
    alone = [x[0, 0] for x in (q, k, v, dy)]
    for got, expected in zip(kernel(*alone, causal=True), want, strict=True):
        assert got.tobytes() == expected[0, 0].tobytes()
    for axes in [(0, 2, 1, 3), (3, 1, 0, 2), (1, 3, 2, 0)]:  # the last axis contiguous, and not
        moved = [np.ascontiguousarray(x.transpose(axes)).transpose(np.argsort(axes)) for x in (q, k, v, dy)]
        assert bits(kernel(*moved, causal=True)) == bits(want)
    backwards = [x[:, ::-1, ::-1] for x in (q, k, v, dy)]
    copies = [np.ascontiguousarray(x) for x in backwards]
    assert bits(kernel(*backwards, causal=True)) == bits(kernel(*copies, causal=True))


def test_rows_that_see_nothing_give_zeros() -> None:
    arrays = inputs(40, 20, 8, 8)  # causal: the first 20 queries come before every key
    o, lse, dq, _, _ = kernel(*arrays, causal=True)
    assert not o[..., :20, :].any() and not lse[..., :20].any() and not dq[..., :20, :].any()
    check(arrays, causal=True)
    hidden = np.zeros((20,), bool)
    assert not any(x.any() for x in kernel(*arrays, mask=hidden))
    assert not any(x.any() for x in kernel(*arrays, mask=np.where(hidden, 0.0, -np.inf)))


@pytest.mark.parametrize("T, S, B", [(0, 5, 1), (5, 0, 1), (0, 0, 1), (5, 5, 0)])
def test_nothing_to_attend_with_or_to(T: int, S: int, B: int) -> None:
    for causal in (False, True):
        check(inputs(T, S, 4, 3, B=B), causal=causal)
        assert not any(x.any() for x in kernel(*inputs(T, S, 4, 3, B=B), causal=causal))


def test_not_a_number_stays_in_its_row() -> None:
    q, k, v, dy = inputs(65, 65, 16, 16)
    q[0, 1, 40, 3] = np.nan
    o, lse, dq, _, _ = kernel(q, k, v, dy, causal=True)
    for x in (o, lse[..., None], dq):
        wrong = np.isnan(x)
        assert wrong[0, 1, 40].all() and wrong.sum() == wrong[0, 1, 40].size


def test_large_scores_do_not_overflow() -> None:
    q, k, v, dy = inputs(65, 257, 16, 16)
    for got in kernel(np.sign(q) * 1e4, np.sign(k) * 1e4, v, dy):
        assert np.isfinite(got).all()
    rising = np.linspace(0, 300, 1000, dtype=np.float32)[:, None]  # every block of keys raises the maximum
    q, _, v, _ = (x[0, 0] for x in inputs(1, 1000, 1, 3))
    got, want = native_forward(abs(q), rising, v)[0], attention.forward(np.float64(abs(q)), rising, v)[0]
    np.testing.assert_allclose(got, want, rtol=1e-4)


@pytest.mark.parametrize("needs", list(itertools.product([False, True], repeat=3)))
def test_needs_skips_and_changes_nothing(needs: tuple[bool, ...]) -> None:
    q, k, v, dy = inputs(65, 65, 16, 16)
    _, saved = native_forward(q, k, v, causal=True)
    some, whole = native_backward(dy, saved, needs), native_backward(dy, saved, ALL)
    for need, part, full in zip(needs, some, whole, strict=True):
        assert part is None if not need else part.tobytes() == full.tobytes()


@pytest.mark.parametrize("B, H, Hk, T", [(1, 1, 1, 300), (1, 6, 3, 200), (5, 4, 2, 129)])
def test_the_same_bits_for_any_number_of_threads(B: int, H: int, Hk: int, T: int) -> None:
    """With few heads a head is cut into parts, whose sizes do not depend on the threads."""
    arrays = inputs(T, T, 33, 20, B=B, H=H, Hk=Hk)
    results = []
    for n in (1, 2, 3, 8):
        native.set_threads(n)
        results.append(bits(kernel(*arrays, causal=True, **DROPPED)))
        results.append(bits(kernel(*arrays, causal=True, **DROPPED)))
    assert all(result == results[0] for result in results)
    check(arrays, causal=True, **DROPPED)


def by_distance(B: int, H: int, Hk: int, T: int, S: int, N: int) -> list[np.ndarray]:
    """q, k, v, dy of heads of 16 numbers, and a bias for each distance"""
    bias = np.random.default_rng(N).normal(size=(H, 2 * N - 1)).astype(np.float32)
    return [*inputs(T, S, 16, 16, B=B, H=H, Hk=Hk), bias]


def relative(arrays: list[np.ndarray], pair: Any, **options: Any) -> list[np.ndarray]:
    q, k, v, dy, bias = arrays
    o, saved = pair[0](q, k, v, bias, **options)
    return [o, *pair[1](dy, saved, (True,) * 4)]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_by_distance_and_its_gradient(masked: bool, isa: str) -> None:
    assert extension.set_isa(isa)
    op = cr.ops.relative_attention
    for B, H, Hk, T, S in ((2, 2, 1, 5, 9), (1, 2, 2, 70, 70), (3, 4, 2, 33, 65), (1, 1, 1, 1, 400)):
        arrays = by_distance(B, H, Hk, T, S, max(T, S) + 3)
        padding = np.arange(S) < np.array([S, S // 2, 1])[:B, None, None, None]
        for options in ({"causal": True}, {"scale": 0.5}, DROPPED):
            given = {**options, "mask": padding if masked else None}
            wanted = relative([a.astype(np.float64) for a in arrays], (op.forward, op.backward), **given)
            for got, want in zip(relative(arrays, op.native, **given), wanted, strict=True):
                assert got.dtype == np.float32
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("B", "H", "Hk", "T"), [(1, 2, 1, 300), (5, 2, 2, 65)])
def test_sums_along_diagonals_have_the_same_bits_for_any_number_of_threads(
    B: int, H: int, Hk: int, T: int
) -> None:
    arrays, op = by_distance(B, H, Hk, T, T, T), cr.ops.relative_attention
    native.set_threads(1)
    want = bits(relative(arrays, op.native, causal=True))
    for threads in (2, 3, 8):
        native.set_threads(threads)
        assert bits(relative(arrays, op.native, causal=True)) == want


def test_the_matrix_of_weights_is_never_stored() -> None:
    extension.give_back()
    before = extension.held_bytes()
    arrays = inputs(3000, 3000, 8, 8, H=1)
    kernel(*arrays, causal=True)
    assert extension.held_bytes() - before < 3000 * 3000 * 4 / 3


def test_wrong_sizes_and_dtypes_are_refused() -> None:
    q, k, v, _ = inputs(4, 6, 8, 8)
    with pytest.raises(TypeError):
        native_forward(q.astype(np.float64), k, v)
    o, lse = np.empty((1, 2, 4, 8), np.float32), np.empty((1, 2, 4), np.float32)
    options = (1.0, False, None, None, 0.0, (0,) * 5, 0)
    with pytest.raises(ValueError, match="o has size 3 on axis 2, expected 4"):
        extension.attention_forward(o[:, :, :3], lse, q, k, v, *options)
    with pytest.raises(ValueError, match="lse has 7 elements, expected 8"):
        extension.attention_forward(o, lse.ravel()[:7], q, k, v, *options)
    with pytest.raises(ValueError, match="v has scattered rows"):
        extension.attention_forward(o, lse, q, k, v.swapaxes(2, 3)[:, :, :6, :6], *options)
    with pytest.raises(ValueError, match="mask"):
        extension.attention_forward(o, lse, q, k, v, 1.0, False, np.ones((1, 2, 4, 5), bool), *options[3:])
    with pytest.raises(ValueError, match="divide"):
        extension.attention_forward(o, lse, q, np.repeat(k, 2, 1)[:, :3], v, *options)


@pytest.mark.parametrize("B, T, H, D", [(2, 65, 3, 16), (1, 7, 2, 5), (3, 0, 1, 4)])
def test_packed_attention_is_attention_on_views(B: int, T: int, H: int, D: int) -> None:
    rng = np.random.default_rng(0)
    qkv = rng.normal(size=(B, T, 3 * H * D)).astype(np.float32)
    dy = rng.normal(size=(B, T, H * D)).astype(np.float32)
    q, k, v = np.ascontiguousarray(qkv.reshape(B, T, 3, H, D).transpose(2, 0, 3, 1, 4))
    do = np.ascontiguousarray(dy.reshape(B, T, H, D).transpose(0, 2, 1, 3))
    forward, backward = packed_attention.native
    y, saved = forward(qkv, heads=H, **DROPPED)
    (dqkv,) = backward(dy, saved, (True,))
    o, lse, *grads = kernel(q, k, v, do, causal=True, **DROPPED)
    assert y.flags.c_contiguous and np.shares_memory(y, saved[3]) == (T > 0)
    assert y.tobytes() == o.transpose(0, 2, 1, 3).tobytes() and saved[4].tobytes() == lse.tobytes()
    want = np.stack(grads).transpose(1, 3, 0, 2, 4)
    assert dqkv.shape == qkv.shape and dqkv.tobytes() == want.tobytes()


def test_the_maps_of_a_model_are_available_on_request() -> None:
    config = cr.models.GPTConfig(n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    model = cr.models.GPT(config)
    with cr.capture("*attention") as seen:
        model(np.arange(6)[None])
    for captured in seen.values():
        q, k, v, o, *_ = captured.saved
        maps = cr.ops.attention_weights(q, k, causal=True)
        assert maps.shape == (1, 2, 6, 6) and not np.triu(maps, 1).any()
        np.testing.assert_allclose(maps @ v, o, atol=1e-5)
