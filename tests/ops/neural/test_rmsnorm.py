"""RMS normalization."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ShapeError
from chainrule.ops import layernorm, rmsnorm
from tests.vectors import vector


def test_by_hand() -> None:
    y = rmsnorm(np.array([[3.0, 4.0], [0.6, 0.8]]), np.array([1.0, 10.0]), eps=0.0)
    np.testing.assert_allclose(y, np.sqrt(2) * np.array([[0.6, 8.0], [0.6, 8.0]]), rtol=1e-15)


@pytest.mark.requirement("R-170")
def test_it_is_the_unit_vector_times_the_root_of_its_size() -> None:
    v = vector("004-1.4.3-unit-vector")
    x = np.array(v.inputs["v"], dtype=np.float64)
    v.check(rmsnorm(x, np.ones(2), eps=0.0) / np.sqrt(2))


@given(st.integers(0, 999))
def test_on_centered_rows_it_is_layer_norm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, gamma = rng.normal(size=(3, 6)), rng.normal(size=6)
    x -= x.mean(axis=-1, keepdims=True)
    want = layernorm(x, gamma, np.zeros(6), eps=1e-6)
    np.testing.assert_allclose(rmsnorm(x, gamma), want, rtol=1e-9, atol=1e-12)


@given(st.integers(0, 999), st.floats(0.01, 100))
def test_scale_invariant_and_its_gradient_orthogonal_to_x(seed: int, a: float) -> None:
    rng = np.random.default_rng(seed)
    x = cr.Tensor(rng.normal(size=(4, 5)), requires_grad=True)
    gamma = rng.normal(size=5)
    scaled = rmsnorm(a * x.data, gamma, eps=0.0)
    np.testing.assert_allclose(scaled, rmsnorm(x.data, gamma, eps=0.0), rtol=1e-12)
    rmsnorm(x, gamma, eps=0.0).backward(rng.normal(size=(4, 5)))
    np.testing.assert_allclose((x.grad * x.data).sum(axis=-1), 0, atol=1e-12)


@pytest.mark.requirement("R-472")
def test_a_row_of_zeros_stays_zero() -> None:
    x = cr.Tensor(np.zeros((2, 3), np.float32), requires_grad=True)
    with np.errstate(all="raise"):
        y = rmsnorm(x, np.ones(3, np.float32))
        y.backward(np.ones((2, 3)))
    np.testing.assert_array_equal(y.data, np.zeros((2, 3)))
    assert np.isfinite(x.grad).all()


def test_a_wrong_gamma_is_named() -> None:
    with pytest.raises(ShapeError, match=re.escape("rmsnorm: x (2, 3), gamma (2,)")):
        rmsnorm(np.ones((2, 3)), np.ones(2))
