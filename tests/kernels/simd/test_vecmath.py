"""exp, tanh, sigmoid and Φ of the kernels against float64; collected only where the extension was built."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from chainrule import native

extension = native.kernels()


@pytest.fixture(params=native.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = native.isa()
    assert extension.set_isa(request.param)
    yield request.param
    assert extension.set_isa(before)


def floats(low: float, high: float) -> np.ndarray:
    """About a million float32 numbers: evenly spaced in value, and the same count evenly spaced in their bits."""
    even = np.linspace(low, high, 500_000, dtype=np.float32)
    patterns = np.linspace(0, 0x7F000000, 500_000).astype(np.uint32).view(np.float32)
    both = np.concatenate([patterns, -patterns])
    return np.concatenate([even, both[(both >= low) & (both <= high)]])


def apply(name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    getattr(extension, name)(y, x)
    return y


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error in units of the last place of the exact (float64) value."""
    unit = np.spacing(np.maximum(np.abs(want), np.finfo(np.float32).tiny).astype(np.float32)).astype(
        np.float64
    )
    return float((np.abs(got - want) / unit).max())


def test_exp(isa: str) -> None:
    x = floats(-87.0, 88.7)
    assert ulps(apply("exp", x), np.exp(x.astype(np.float64))) < (1.1 if isa != "baseline" else 2.1)


def test_tanh(isa: str) -> None:
    x = floats(-20.0, 20.0)
    assert ulps(apply("tanh", x), np.tanh(x.astype(np.float64))) < 2.1


def test_sigmoid(isa: str) -> None:
    x = floats(-80.0, 80.0)
    assert ulps(apply("sigmoid", x), 1 / (1 + np.exp(-x.astype(np.float64)))) < 3.1


def test_normal_cdf(isa: str) -> None:
    x = floats(-9.0, 9.0)
    want = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x.astype(np.float64)])
    got = apply("normal_cdf", x)
    assert np.abs(got - want).max() < 3e-7
    inner = x > -5
    assert (np.abs(got - want) / want)[inner].max() < 5e-6


def test_edges(isa: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4, 89.0, -104.5, -95.0] * 5, np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(apply("exp", x), np.exp(x), rtol=1e-6, atol=1e-45)
    np.testing.assert_array_equal(apply("tanh", x), np.tanh(x))
    want = np.array([0.5, 0.5, 1, 0, np.nan, 1, 0, 1, 0, 0] * 5, np.float32)
    np.testing.assert_allclose(apply("sigmoid", x), want, atol=1e-40)
    np.testing.assert_allclose(apply("normal_cdf", x), want, atol=1e-40)


def test_any_length() -> None:
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    whole = apply("tanh", x)
    for n in range(41):
        np.testing.assert_array_equal(apply("tanh", x[:n].copy()), whole[:n])
