"""Dropout: the mask is a pure function of its key, and the mean stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.ops import dropout, keep_mask
from chainrule.random import key

KEY = key("dropout", 3, 1, seed=7)


def philox_block(counter: list[int], words: tuple[int, int]) -> list[int]:
    """Philox4x64 with ten rounds, from the paper: four 64-bit words per counter."""
    mask = (1 << 64) - 1
    k0, k1 = words
    for _ in range(10):
        a, b = 0xD2E7470EE14C6C93 * counter[0], 0xCA5A826395121157 * counter[2]
        counter = [(b >> 64) ^ counter[1] ^ k0, b & mask, (a >> 64) ^ counter[3] ^ k1, a & mask]
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return counter


@pytest.mark.parametrize("n", [1, 7, 8, 21])
def test_the_recipe_of_the_derivation_page(n: int) -> None:
    p = 0.3
    want = []
    for i in range(n):
        word = philox_block([i // 8 + 1, *KEY[2:]], KEY[:2])[i // 2 % 4]
        half = word >> 32 if i % 2 else word & 0xFFFFFFFF
        want.append(half >= round(p * 2**32))
    assert keep_mask((n,), p, KEY).tolist() == want


def test_a_word_at_the_threshold_is_kept() -> None:
    word = philox_block([1, *KEY[2:]], KEY[:2])[0] & 0xFFFFFFFF
    assert keep_mask((1,), word / 2**32, KEY)[0]
    assert not keep_mask((1,), (word + 1) / 2**32, KEY)[0]


@given(st.floats(0, 0.99), st.integers(0, 99))
def test_values_are_zero_or_scaled(p: float, index: int) -> None:
    x = np.random.default_rng(index).normal(size=(5, 8))
    keep = keep_mask(x.shape, p, key("test", index, seed=0))
    y = dropout(x, p=p, key=key("test", index, seed=0))
    np.testing.assert_allclose(y, np.where(keep, x / (1 - p), 0), rtol=1e-15)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_mean(p: float) -> None:
    n = 100_000
    y = dropout(np.ones(n, np.float32), p=p, key=KEY)
    error = math.sqrt(p * (1 - p) / n)
    assert abs((y == 0).mean() - p) < 3 * error
    assert abs(y.mean(dtype=np.float64) - 1) < 3 * error / (1 - p)


def test_the_key_is_all_that_matters() -> None:
    x = np.ones((64, 64), np.float32)
    first = dropout(x, p=0.5, key=KEY)
    np.testing.assert_array_equal(dropout(x, p=0.5, key=KEY), first)
    np.testing.assert_array_equal(dropout(x[::-1].T, p=0.5, key=KEY), first, "the layout does not matter")
    np.testing.assert_array_equal(keep_mask((4096,), 0.5, KEY).reshape(64, 64), first != 0)
    for other in (key("dropout", 4, 1, seed=7), key("dropout", 3, 2, seed=7), key("dropout", 3, 1, seed=8)):
        assert 0.4 < (dropout(x, p=0.5, key=other) == first).mean() < 0.6


def test_gradient_uses_the_same_mask() -> None:
    x = cr.Tensor(np.ones((3, 5), np.float32), requires_grad=True)
    y = dropout(x, p=0.4, key=KEY)
    y.backward(np.full((3, 5), 2.0))
    np.testing.assert_array_equal(x.grad, 2 * y.data)
    _, (mask, scale) = dropout.forward(x.data, p=0.4, key=KEY)
    assert mask.dtype == bool and scale == 1 / (1 - 0.4), "one byte per element is kept"


def test_p_0_is_the_identity() -> None:
    x = np.ones(3)
    assert dropout(x, p=0.0) is x
    t = cr.Tensor(x, requires_grad=True)
    dropout(t, p=0.0).backward([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(t.grad, [1, 2, 3])


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, math.nan])
def test_p_out_of_range(p: float) -> None:
    with pytest.raises(ConfigError, match=r"dropout: p is .* \(must be at least 0 and below 1\)"):
        dropout(np.ones(3), p=p, key=KEY)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"dropout: p is 0.1, key is None"):
        dropout(np.ones(3), p=0.1)
