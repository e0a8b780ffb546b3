"""Layer normalization: worked examples, invariances, edge cases, and what it does to a deep network."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule import native, ops
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops import layernorm
from tests.vectors import vector


def plain(x: np.ndarray, **constants: Any) -> np.ndarray:
    """Without the affine part."""
    C = x.shape[-1]
    return layernorm(x, np.ones(C, x.dtype), np.zeros(C, x.dtype), **constants)


@pytest.mark.requirement("R-162")
def test_worked_example_step_by_step() -> None:
    v = vector("004-9.9.5-ln-out")
    x = np.array(v.inputs["x"])
    y, (_, _, _, mean, rstd) = layernorm.forward(x, np.ones(4), np.zeros(4), eps=v.inputs["eps"])
    sigma = 1 / rstd[0]
    vector("004-9.9.5-ln-mean").check({"mu": mean[0], "dev": y * sigma})
    vector("004-9.9.5-ln-squares").check({"sq": (x - mean) ** 2, "sum": 4 * sigma**2})
    vector("004-9.9.5-ln-sigma").check({"var": sigma**2, "sigma": sigma})
    v.check({"y": y, "mean": y.mean()})


@pytest.mark.requirement("R-162")
def test_the_three_ways_to_place_epsilon() -> None:
    v = vector("der-layernorm")
    x, gamma, beta = (np.array(v.inputs[name]) for name in ("x", "gamma", "beta"))
    eps = v.inputs["eps"]
    assert layernorm.forward.__kwdefaults__ == {"eps": eps, "eps_mode": "inside"}
    v.check(
        {
            "inside": layernorm(x, gamma, beta),
            "outside": layernorm(x, gamma, beta, eps=eps, eps_mode="outside"),
            "eps0": layernorm(x, gamma, beta, eps=0.0),
        }
    )


@pytest.mark.requirement("R-164", "R-348")
def test_backward() -> None:
    v = vector("der-layernorm-backward")
    tensors = [cr.Tensor(np.array(v.inputs[n]), requires_grad=True) for n in ("x", "gamma", "beta")]
    layernorm(*tensors, eps=v.inputs["eps"]).backward(v.inputs["grad"])
    v.check(dict(zip(("dx", "dgamma", "dbeta"), (t.grad for t in tensors), strict=True)))


@pytest.mark.requirement("R-164", "R-348")
def test_backward_is_the_sum_of_its_three_terms() -> None:
    rng = np.random.default_rng(0)
    x, g, gamma = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 3, 5)), rng.normal(size=5)
    tensors = [cr.Tensor(a, requires_grad=True) for a in (x, gamma, np.zeros(5))]
    layernorm(*tensors, eps=0.0).backward(g)
    sigma = x.std(axis=-1, keepdims=True)
    xhat, ghat = (x - x.mean(axis=-1, keepdims=True)) / sigma, g * gamma
    direct = ghat / sigma
    through_mean = -ghat.sum(axis=-1, keepdims=True) / 5 / sigma
    through_variance = -xhat * (ghat * xhat).sum(axis=-1, keepdims=True) / 5 / sigma
    np.testing.assert_allclose(tensors[0].grad, direct + through_mean + through_variance, rtol=1e-10)
    np.testing.assert_allclose(tensors[1].grad, (g * xhat).sum(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(tensors[2].grad, g.sum(axis=(0, 1)), rtol=1e-12)


@pytest.mark.requirement("R-165")
@given(st.integers(0, 999), st.integers(2, 9))
def test_the_variance_does_not_feel_the_mean(seed: int, C: int) -> None:
    x = np.random.default_rng(seed).normal(size=C)
    assert abs((x - x.mean()).sum()) < 1e-13
    mu = cr.Tensor(x.mean(keepdims=True), requires_grad=True)
    ((cr.Tensor(x) - mu) ** 2).mean().backward()
    assert abs(mu.grad[0]) < 1e-14


@pytest.mark.requirement("R-163")
def test_rows_do_not_see_each_other_and_nothing_is_remembered() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 5))
    y = plain(x)
    other = rng.normal(size=(4, 5)) * 100
    other[2] = x[2]
    np.testing.assert_array_equal(plain(other)[2], y[2])
    np.testing.assert_array_equal(plain(x[2]), y[2])
    np.testing.assert_array_equal(plain(x), y)
    arrays = [p for p in inspect.signature(layernorm.forward).parameters.values() if p.default is p.empty]
    assert [p.name for p in arrays] == ["x", "gamma", "beta"], "no running statistics"
    message = "layernorm: x (4, 5), gamma (4,), beta (5,) (gamma must have the size of x's last"
    with pytest.raises(ShapeError, match=re.escape(message)):
        layernorm(x, np.ones(4), np.zeros(5))


@pytest.mark.requirement("R-166")
def test_gamma_and_beta_can_undo_it() -> None:
    x = np.random.default_rng(1).normal(3, 2, size=8)
    for eps in (0.0, 1e-5, 0.1):
        y = layernorm(x, np.full(8, np.sqrt(x.var() + eps)), np.full(8, x.mean()), eps=eps)
        np.testing.assert_allclose(y, x, rtol=0, atol=1e-12)


@pytest.mark.requirement("R-167")
@given(st.integers(0, 999), st.floats(0.1, 100), st.floats(-100, 100))
def test_mean_0_variance_1_and_invariance(seed: int, a: float, b: float) -> None:
    x = np.random.default_rng(seed).normal(size=(3, 16))
    y = plain(x)
    assert np.abs(y.mean(axis=-1)).max() < 1e-12
    assert np.abs(y.var(axis=-1) - 1).max() < 1e-4
    np.testing.assert_allclose(plain(a * x + b, eps=0.0), plain(x, eps=0.0), rtol=1e-8, atol=1e-9)


@pytest.mark.requirement("R-472")
@pytest.mark.parametrize("eps_mode", ["inside", "outside"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_row_gives_beta(eps_mode: str, dtype: type) -> None:
    gamma, beta = np.array([1.0, 2.0, 3.0], dtype), np.array([0.5, -0.5, 0.25], dtype)
    x = cr.Tensor(np.array([[7.0] * 3, [0.0] * 3], dtype), requires_grad=True)
    with np.errstate(all="raise"):
        y = layernorm(x, gamma, beta, eps_mode=eps_mode)
        y.backward(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(y.data, [beta, beta])
    assert np.isfinite(x.grad).all()


@pytest.mark.skipif(not native.available(), reason="no kernels to test")
def test_the_kernel_serves_epsilon_inside_the_root_only(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    kernels = native.kernels()
    spy = SimpleNamespace(
        Block=kernels.Block,
        layernorm_forward=lambda *args: calls.append("forward") or kernels.layernorm_forward(*args),
        layernorm_backward=lambda *args: calls.append("backward") or kernels.layernorm_backward(*args),
    )
    monkeypatch.setattr(native, "kernels", lambda: spy)
    for eps_mode, served in (("outside", []), ("inside", ["forward", "backward"])):
        x = cr.Tensor(np.ones((2, 3), np.float32), requires_grad=True)
        with cr.backend("native"):
            y = layernorm(x, np.ones(3, np.float32), np.zeros(3, np.float32), eps_mode=eps_mode)
            y.sum().backward()
        assert calls == served


def test_an_unknown_eps_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="eps_mode is 'middle'"):
        plain(np.ones(3), eps_mode="middle")


@pytest.mark.requirement("R-169")
def test_without_normalisation_activations_drift_over_depth() -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(32, 64)).astype(np.float32)
    bare = normalized = start
    spread = []
    for _ in range(50):
        W = (rng.normal(size=(64, 64)) * np.sqrt(2 / 64)).astype(np.float32)  # relu(x Wᵀ) as large as x
        bare = bare + ops.relu(ops.linear(bare, W))
        normalized = plain(normalized + ops.relu(ops.linear(normalized, W)))
        spread.append(normalized.std())
    assert bare.std() > 1000 * start.std()
    assert 0.5 < min(spread) <= max(spread) < 2


@pytest.mark.requirement("R-170")
def test_relation_to_unit_vectors() -> None:
    x = np.random.default_rng(0).normal(size=(3, 8))
    centered = x - x.mean(axis=-1, keepdims=True)
    unit = centered / np.linalg.norm(centered, axis=-1, keepdims=True)
    np.testing.assert_allclose(plain(x, eps=0.0), np.sqrt(8) * unit, rtol=1e-12)
    q, k, v = np.random.default_rng(1).normal(size=(3, 1, 4, 8))
    assert not np.allclose(ops.attention(2 * q, k, v), ops.attention(q, k, v)), "queries are not normalized"


@pytest.mark.parametrize("kind", ["native", "reference"])
@pytest.mark.parametrize("C", [3, 16, 100, 384, 1000])
def test_a_constant_row_far_from_0_is_normalized_to_0(kind: str, C: int) -> None:
    gamma, beta = np.ones(C, np.float32), np.zeros(C, np.float32)
    x = np.repeat(np.float32([[1e6], [-3e7], [123456.7], [0.1]]), C, axis=1)
    with cr.backend(kind):
        y, saved = cr.ops.layernorm.run_forward([x, gamma, beta], {})
        assert (y[:3] == 0).all() and (saved[3][:3] == x[:3, :1]).all()
        assert np.abs(y[3]).max() < 1e-4  # rounding of the mean beside the eps
        columns = cr.ops.batchnorm(
            np.ascontiguousarray(x[:3].T), np.ones(3, np.float32), np.zeros(3, np.float32)
        )[0]
        assert (columns == 0).all()


def test_an_overflow_beside_a_row_far_from_0_says_nothing() -> None:
    x = np.full((2, 8), 1e6, np.float32)
    x[1] = np.geomspace(1e18, 1e30, 8)
    with cr.backend("reference"), np.errstate(over="raise"):
        y = cr.ops.layernorm(x, np.ones(8, np.float32), np.zeros(8, np.float32))
    assert (y[0] == 0).all() and np.isnan(y[1]).all()


@pytest.mark.parametrize("kind", ["native", "reference"])
def test_a_row_whose_squares_overflow_is_not_hidden(kind: str) -> None:
    C = 33
    x = np.random.default_rng(0).normal(size=(3, C)).astype(np.float32)
    x[1] *= 1e25
    gamma, beta = np.ones(C, np.float32), np.zeros(C, np.float32)
    with cr.backend(kind):
        for y in (cr.ops.layernorm(x, gamma, beta), cr.ops.rmsnorm(x, gamma)):
            assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()
