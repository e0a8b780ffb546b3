"""Attention with a bias for each distance: what is added where, a cache, misuse."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops.neural.relative_attention import pair_bias

RNG = np.random.default_rng(0)
B, H, T, D, N = 2, 3, 5, 4, 9
Q, K, V = RNG.normal(size=(3, B, H, T, D))
BIAS = RNG.normal(size=(H, 2 * N - 1))


def test_the_bias_of_a_pair_is_that_of_its_distance() -> None:
    by_distance = np.broadcast_to(np.arange(1 - N, N, dtype=float), (H, 2 * N - 1))
    found = pair_bias(by_distance, None, 3, 5)  # three queries at positions 2, 3 and 4
    assert found[1].tolist() == [[-2, -1, 0, 1, 2], [-3, -2, -1, 0, 1], [-4, -3, -2, -1, 0]]


def test_it_is_attention_with_these_numbers_added() -> None:
    mask = np.arange(T) < np.array([5, 3])[:, None, None, None]
    added = np.where(mask, pair_bias(BIAS, None, T, T), -np.inf)
    want = ops.attention(Q, K, V, mask=added)
    np.testing.assert_allclose(ops.relative_attention(Q, K, V, BIAS, mask=mask), want, rtol=1e-12)


def test_the_last_queries_give_the_same_alone() -> None:
    """As with a cache: the others' keys and values are there, their queries are not."""
    whole = ops.relative_attention(Q, K, V, BIAS, causal=True)
    last = ops.relative_attention(Q[:, :, 3:], K, V, BIAS, causal=True)
    np.testing.assert_allclose(last, whole[:, :, 3:], rtol=1e-12)


def test_a_longer_table_changes_nothing() -> None:
    short = BIAS[:, N - T : N + T - 1]
    same = ops.relative_attention(Q, K, V, short), ops.relative_attention(Q, K, V, BIAS)
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize(
    ("bias", "options", "error", "message"),
    [
        (BIAS[:2], {}, ShapeError, r"bias \(2, 17\) \(must be \(..., H, T, D\) and \(H, 2N - 1\)\)"),
        (BIAS[:, 1:], {}, ShapeError, r"bias \(3, 16\)"),
        (BIAS[:, 5:12], {}, ShapeError, "5 positions, the bias is for 4"),
        (BIAS, {"mask": np.zeros((T, T))}, ConfigError, "mask has dtype float64"),
    ],
)
def test_misuse_is_named(bias: np.ndarray, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ops.relative_attention(Q, K, V, bias, **options)


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize(("T", "S"), [(0, 3), (2, 0), (0, 0)])
def test_no_queries_or_no_keys(backend: str, T: int, S: int) -> None:
    q, k = (cr.Tensor(np.ones((2, 1, n, 4), np.float32), requires_grad=True) for n in (T, S))
    bias = cr.Tensor(np.ones((1, 7), np.float32), requires_grad=True)
    with cr.backend(backend):
        o = cr.ops.relative_attention(q, k, k, bias)
        o.sum().backward()
    assert o.shape == (2, 1, T, 4) and not o.data.any()
    np.testing.assert_array_equal(bias.grad, 0)


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("relative", [False, True])
def test_backward_has_the_mask_of_forward(backend: str, relative: bool) -> None:
    mask, grads = np.array([[True, False, True]] * 3), []
    x = np.random.default_rng(0).normal(size=(1, 3, 4)).astype(np.float32)
    for changed in (False, True):
        q = cr.Tensor(x, requires_grad=True)
        more = (np.ones((1, 5), np.float32),) if relative else ()
        with cr.backend(backend):
            op = cr.ops.relative_attention if relative else cr.ops.attention
            o = op(q, q, q, *more, mask=mask)
            if changed:
                mask[:] = ~mask
            (o * o).sum().backward()
        grads.append(q.grad)
    np.testing.assert_array_equal(*grads)
