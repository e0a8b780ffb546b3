"""Output layer + cross-entropy: what linear and cross_entropy give one after the other, whatever the chunks."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Param, Parameters, Tensor
from chainrule.autograd.deferred import Deferred
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError, GraphError, ShapeError
from chainrule.ops import cross_entropy, linear, linear_cross_entropy

module = importlib.import_module("chainrule.ops.losses.linear_cross_entropy")


def case(N: int = 37, V: int = 11, C: int = 5) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng((N, V))
    return rng.normal(size=(N, C)), rng.normal(size=(V, C)), rng.integers(0, V, size=N)


def run(op, x: Array, W: Array, dtype: type = np.float64, **constants) -> list[Array]:
    """loss, dx, dW"""
    leaves = [cr.Tensor(a.astype(dtype), requires_grad=True) for a in (x, W)]
    loss = op(*leaves, **constants)
    loss.backward(np.ones(loss.shape))
    return [loss.data, *(leaf.grad for leaf in leaves)]


def two_steps(x, W, **constants):
    return cross_entropy(linear(x, W), **constants)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("chunk", [1, 11, 50, 1 << 23])
@pytest.mark.parametrize("keep", [0, 1 << 26])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_equals_the_two_steps(
    monkeypatch: pytest.MonkeyPatch, dtype: type, chunk: int, keep: int, reduction: str
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setattr(module, "KEEP", keep)
    x, W, ids = case()
    options = {"targets": ids, "ignore_index": int(ids[0]), "label_smoothing": 0.1, "reduction": reduction}
    for got, want in zip(
        run(linear_cross_entropy, x, W, dtype, **options), run(two_steps, x, W, **options), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype is np.float32 else 1e-12, atol=1e-6)


def test_beyond_the_limit_nothing_of_the_size_of_the_logits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, W, ids = case(N=64, V=300)
    monkeypatch.setattr(module, "KEEP", 1000)
    _, saved = linear_cross_entropy.forward(x, W, targets=ids)
    assert max(np.size(s) for s in saved) < 64 * 300 / 10
    monkeypatch.setattr(module, "KEEP", 64 * 300)
    _, saved = linear_cross_entropy.forward(x, W, targets=ids)
    np.testing.assert_allclose(saved[3], x @ W.T)


def test_chunks_are_even_and_read_the_weight_seldom() -> None:
    def starts(N: int, V: int, C: int) -> list[int]:
        return [chunk.start for chunk in module._chunks(N, V, C)]

    assert starts(10, module.CHUNK // 4, 4) == [0, 4, 8]
    assert starts(9, module.CHUNK // 4, 4) == [0, 3, 6]
    assert starts(0, 5, 4) == []
    assert starts(3, 2 * module.CHUNK, 1) == [0, 1, 2]
    assert starts(1024, 50257, 768) == [0, 512]  # not 160 rows of 50257 logits
    assert starts(256, 1 << 20, 100) == [0, 96, 192]  # never more logits than weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_weight_gradient_is_added_where_it_belongs(dtype: type) -> None:
    x, W, ids = case()
    params = Parameters([("W", Param(W, dtype=dtype))])
    params.grad[...] = 1
    linear_cross_entropy(x.astype(dtype), params["W"], targets=ids).backward()
    np.testing.assert_allclose(params["W"].grad, 1 + run(two_steps, x, W, targets=ids)[2], rtol=1e-5)


def test_no_rows() -> None:
    for dtype in (np.float32, np.float64):
        loss, dx, dW = run(linear_cross_entropy, *case(N=0)[:2], dtype, targets=np.zeros(0, int))
        assert loss == 0 and dx.shape == (0, 5) and not dW.any()


def test_bad_input() -> None:
    x, W, ids = case()
    with pytest.raises(
        ShapeError, match=re.escape("linear_cross_entropy: x is (37, 5), W is (11, 4) (must be")
    ):
        linear_cross_entropy(x, W[:, :4], targets=ids)
    with pytest.raises(DataError, match="linear_cross_entropy: target 99 at position 0, V is 11"):
        linear_cross_entropy(x, W, targets=ids + 99 - ids[0])
    with pytest.raises(ShapeError, match=r"linear_cross_entropy: weights have shape \(1,\)"):
        linear_cross_entropy(x, W, targets=ids, weights=[1.0])


WAYS = ("deferred", "read before backward", "forward, then backward")


def results(
    monkeypatch: pytest.MonkeyPatch, way: str, dy: float, learns: bool, **constants: Any
) -> list[Array]:
    """loss, dx, dW, with dW in a flat block; with `learns` dx is there too"""
    x, W, ids = case(N=40, V=33, C=16)
    leaf: Tensor = Param(x) if learns else Tensor(x.astype(np.float32), requires_grad=True)
    params = Parameters([("W", Param(W)), *([("x", leaf)] if isinstance(leaf, Param) else [])])
    params.grad[...] = 1
    with monkeypatch.context() as patch:
        if way == WAYS[2]:
            patch.setattr(linear_cross_entropy, "value_and_grad", None)
        loss = linear_cross_entropy(leaf, params["W"], targets=ids, **constants)
    assert isinstance(loss, Deferred) == (way != WAYS[2] and constants.get("reduction") != "none")
    if way == WAYS[1]:
        assert type(loss.array) is np.ndarray and not loss.array.flags.writeable
    loss.backward(np.full(loss.shape, dy, np.float32))
    assert leaf.grad is not None
    return [loss.data, leaf.grad, params["W"].grad]


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("dy", [1.0, 0.3])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss_has_the_same_bits_whenever_it_is_computed(
    monkeypatch: pytest.MonkeyPatch, dy: float, precision: str, reduction: str, backend: str, learns: bool
) -> None:
    monkeypatch.setattr(module, "CHUNK", 7 * 33)
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setattr(module, "KEEP", 0)
    options: dict[str, Any] = {"ignore_index": 3, "label_smoothing": 0.1, "reduction": reduction}
    with cr.precision(precision), cr.backend(backend):
        first, *others = (results(monkeypatch, way, dy, learns, **options) for way in WAYS)
    for other in others:
        for got, want in zip(other, first, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Parameters]:
    """A loss that waits for backward, and the parameters it depends on."""
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, ids = case()
    params = Parameters([("W", Param(W))])
    return linear_cross_entropy(Tensor(x.astype(np.float32)), params["W"], targets=ids), params


def test_a_deferred_loss_may_be_used_like_any_other(deferred: tuple[Tensor, Parameters]) -> None:
    loss, params = deferred
    assert (loss.shape, loss.ndim, loss.size, loss.dtype) == ((), 0, 1, np.float32)
    loss.backward(retain=True)
    once = params["W"].grad.copy()
    (0.5 * loss).backward()
    np.testing.assert_allclose(params["W"].grad, 1.5 * once, rtol=1e-6)
    with pytest.raises(GraphError, match="already used"):
        loss.backward()


def test_hooks_see_the_gradient_of_a_deferred_loss_and_of_its_inputs(
    deferred: tuple[Tensor, Parameters],
) -> None:
    loss, params = deferred
    seen: list[float] = []
    loss.register_hook(lambda grad: seen.append(float(grad)))
    params["W"].register_hook(lambda grad: 0 * grad)
    loss.backward(2.0)
    assert seen == [2.0] and not params["W"].grad.any()


def test_a_value_that_waits_is_not_read_with_other_weights(deferred: tuple[Tensor, Parameters]) -> None:
    loss, params = deferred
    params["W"].data *= 2
    with pytest.raises(
        GraphError, match=r"W of shape \(11, 5\) was changed in place before this value was read"
    ):
        loss.item()
    with pytest.raises(GraphError, match=r"W of shape \(11, 5\) was changed in place after linear_cross"):
        loss.backward()


def test_targets_are_those_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, ids = case()
    want = linear_cross_entropy(x, W, targets=ids)
    loss = linear_cross_entropy(Tensor(x, requires_grad=True), W, targets=ids)
    ids[:] = 0
    assert loss.item() == want


def test_complaints_do_not_wait_for_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, ids = case()
    leaf = Tensor(x.astype(np.float32), requires_grad=True)
    with pytest.raises(ConfigError, match=r"linear_cross_entropy: .*missing.*'targets'"):
        linear_cross_entropy(leaf, W.astype(np.float32))
    with pytest.raises(DataError, match="linear_cross_entropy: target 99 at position 0, V is 11"):
        linear_cross_entropy(leaf, W.astype(np.float32), targets=ids + 99 - ids[0])


def test_what_a_norm_was_computed_from_must_not_change_before_a_waiting_value_is_read() -> None:
    """The output of the norm is recomputed when the value is read, from the gamma of that moment."""
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(2, 1 << 19, 2)), rng.normal(size=(11, 2))
    x = Tensor(x.astype(np.float32), requires_grad=True)  # its norm is large enough not to be kept
    gamma, beta = (Param(np.full(2, value), name) for value, name in ((1.0, "gamma"), (0.0, "beta")))
    normed = cr.ops.layernorm(x, gamma, beta)
    loss = linear_cross_entropy(normed, W.astype(np.float32), targets=np.zeros((2, 1 << 19), int))
    assert isinstance(loss, Deferred)
    gamma.data *= 3
    with pytest.raises(GraphError, match=r"gamma of shape \(2,\) was changed in place"):
        loss.item()


@pytest.mark.parametrize("mode", [cr.precision("bf16"), cr.backend("reference")])
def test_a_value_that_waits_is_computed_as_it_was_called(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, ids = case(N=40, V=33, C=16)
    leaf, matrix = Tensor(x.astype(np.float32), requires_grad=True), W.astype(np.float32)
    with mode:
        want = linear_cross_entropy(leaf.array, matrix, targets=ids)
        loss = linear_cross_entropy(leaf, matrix, targets=ids)
    assert isinstance(loss, Deferred) and loss.item() == want


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keep", [0, 1 << 20])
def test_rows_that_learn_get_the_gradient_of_their_rows_of_the_whole(
    dtype: type, keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP", keep)
    monkeypatch.setattr(module, "CHUNK", 500)
    monkeypatch.setattr(module, "ROWS", 1)
    x, W, targets = case(N=64, V=50)
    x, W, ids = x.astype(dtype), W.astype(dtype), np.array([49, 3])
    whole, rows = Tensor(W, requires_grad=True), Tensor(W[ids], requires_grad=True)
    inputs = [Tensor(x, requires_grad=True) for _ in range(2)]
    expected = linear_cross_entropy(inputs[0], whole, targets=targets, label_smoothing=0.1)
    expected.backward()
    found = linear_cross_entropy(inputs[1], W, rows, targets=targets, row_ids=ids, label_smoothing=0.1)
    found.backward()
    assert found.item() == expected.item()
    np.testing.assert_array_equal(inputs[1].grad, inputs[0].grad)
    np.testing.assert_allclose(rows.grad, whole.grad[ids], rtol=1e-4, atol=1e-7)


def test_rows_are_put_where_the_matrix_has_others_and_no_id_stands_twice() -> None:
    x, W, targets = case(N=8, V=12)
    other = W.copy()
    other[[2, 5]] = 0
    found = linear_cross_entropy(x, other, W[[2, 5]], targets=targets, row_ids=[2, 5])
    np.testing.assert_array_equal(found, linear_cross_entropy(x, W, targets=targets))
    with pytest.raises(cr.ChainruleError, match="must differ"):
        linear_cross_entropy(x, W, W[[2, 2]], targets=targets, row_ids=[2, 2])


@pytest.mark.parametrize("options", [{"exclude_true": True}, {"ignore_index": -1}, {"label_smoothing": 0.2}])
def test_the_gradient_of_rows_of_their_own_is_the_same_by_kernels(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    x, W, own = (rng.normal(size=(n, 5)).astype(np.float32) for n in (7, 9, 2))
    targets = np.array([6, 3, 0, 8, 3, -1 if "ignore_index" in options else 1, 6])
    found = []
    for backend in ("native", "reference"):
        leaf = cr.Tensor(own, requires_grad=True)
        with cr.backend(backend):
            loss = linear_cross_entropy(x, W, leaf, targets=targets, row_ids=[6, 3], **options)
            loss.backward()
        found.append((loss.item(), leaf.grad))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    assert np.abs(found[1][1]).max() > 1e-3
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-6)
