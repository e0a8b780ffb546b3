"""Output layer + cross-entropy: what linear and cross_entropy give one after the other, whatever the chunks."""

from __future__ import annotations

import importlib
import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Param, Parameters, Tensor, fused_gradient
from chainrule.autograd.fused_gradient import KnownGradient
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError, GraphError, ShapeError
from chainrule.ops import cross_entropy, linear, linear_cross_entropy

module = importlib.import_module("chainrule.ops.linear_cross_entropy")


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
    np.testing.assert_allclose(saved[2], x @ W.T)


def test_chunks_are_even() -> None:
    assert [s.start for s in module._chunks(10, module.CHUNK // 4)] == [0, 4, 8]
    assert [s.start for s in module._chunks(9, module.CHUNK // 4)] == [0, 3, 6]
    assert list(module._chunks(0, 5)) == []
    assert len(list(module._chunks(3, 2 * module.CHUNK))) == 3


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


def fused_and_not(dy: float, learns: bool, **constants: Any) -> tuple[list[Array], list[Array]]:
    """(loss, dx, dW), with dW in a flat block: computed in forward, and in backward. With `learns` x is there too."""
    x, W, ids = case(N=40, V=33, C=16)
    results = []
    for known in (True, False):
        leaf: Tensor = Param(x) if learns else Tensor(x.astype(np.float32), requires_grad=True)
        params = Parameters([("W", Param(W)), *([("x", leaf)] if isinstance(leaf, Param) else [])])
        params.grad[...] = 1
        with fused_gradient(dy) if known else nullcontext():
            loss = linear_cross_entropy(leaf, params["W"], targets=ids, **constants)
        assert type(loss.array) is np.ndarray
        assert (params["W"].grad != 1).any() == (known and constants.get("reduction") != "none")
        loss.backward(np.full(loss.shape, dy, np.float32))
        assert leaf.grad is not None
        results.append([loss.data, leaf.grad, params["W"].grad])
    return results[0], results[1]


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("dy", [1.0, 0.3])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients_made_ahead_have_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, dy: float, precision: str, reduction: str, backend: str, learns: bool
) -> None:
    monkeypatch.setattr(module, "CHUNK", 7 * 33)
    monkeypatch.setattr(module, "KEEP", 0)
    with cr.precision(precision), cr.backend(backend):
        fused, later = fused_and_not(
            float(np.float32(dy)), learns, ignore_index=3, label_smoothing=0.1, reduction=reduction
        )
    for got, want in zip(fused, later, strict=True):
        np.testing.assert_array_equal(got, want)


def made_ahead(monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, KnownGradient, Parameters]:
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, ids = case()
    params = Parameters([("W", Param(W))])
    with fused_gradient(1.0) as known:
        loss = linear_cross_entropy(
            Tensor(x.astype(np.float32), requires_grad=True), params["W"], targets=ids
        )
    return loss, known, params


def test_a_gradient_other_than_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, _, _ = made_ahead(monkeypatch)
    with pytest.raises(
        GraphError,
        match=r"computed its gradients in forward for a gradient of 1\.0, and gets 0\.5 \(.*fused_loss",
    ):
        (0.5 * loss).backward()


def test_what_was_made_ahead_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, known, _ = made_ahead(monkeypatch)
    with pytest.raises(
        GraphError, match="linear_cross_entropy: computed its gradients in forward, and backward did not"
    ):
        known.check()
    loss.backward(retain=True)
    known.check()
    with pytest.raises(GraphError, match="linear_cross_entropy computed its gradients in forward, for one"):
        loss.backward()


def test_a_hook_that_comes_too_late_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, _, params = made_ahead(monkeypatch)
    params["W"].register_hook(lambda grad: 0 * grad)
    with pytest.raises(GraphError, match="a hook on W came after linear_cross_entropy had added"):
        loss.backward()


def test_complaints_are_the_same_where_a_gradient_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP", 0)
    x, W, _ = case()
    leaf = Tensor(x.astype(np.float32), requires_grad=True)
    with fused_gradient(1.0), pytest.raises(ConfigError, match=r"linear_cross_entropy: .*missing.*'targets'"):
        linear_cross_entropy(leaf, W.astype(np.float32))
