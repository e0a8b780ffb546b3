"""Surprise, entropy, cross-entropy, KL divergence; and entropy falling as a model learns."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations import information as info
from chainrule.foundations.probability import softmax, uniform
from tests.vectors import vector

pairs = hnp.arrays(
    np.float64, st.tuples(st.just(2), st.integers(1, 6)), elements=st.floats(-8, 8, allow_subnormal=False)
)


@pytest.mark.requirement("R-068")
def test_surprise() -> None:
    v = vector("004-3.9-surprise")
    v.check(info.surprise(v.inputs["p"]))
    assert info.surprise(0.0) == math.inf
    assert math.copysign(1, info.surprise(1.0)) == 1


@pytest.mark.requirement("R-068")
@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_worked_entropies(name: str) -> None:
    v = vector(f"004-3.9-entropy-{name}")
    p = np.array(v.inputs["p"])
    v.check(info.entropy(p))
    assert info.entropy(p) == pytest.approx((p * info.surprise(p)).sum(), rel=1e-12)  # expected surprise


@pytest.mark.requirement("R-068")
@given(pairs)
def test_entropy_lies_between_certain_and_uniform(z: np.ndarray) -> None:
    p = softmax(z[0])
    assert -1e-12 <= info.entropy(p) <= info.entropy(uniform(len(p))) + 1e-12
    assert info.entropy(uniform(len(p))) == pytest.approx(math.log(len(p)), abs=1e-12)
    certain = np.eye(len(p))[0]
    assert info.entropy(certain) == 0


@pytest.mark.requirement("R-069", "R-077")
@pytest.mark.parametrize("name", ["fair-coin", "biased-coin"])
def test_entropy_in_bits(name: str) -> None:
    v = vector(f"004-13.9.1.1-{name}")
    p, base = v.inputs["p"], v.inputs["base"]
    v.check(info.entropy(p, base))
    v.check(info.nats_to_bits(info.entropy(p)))  # nats are the default


@pytest.mark.requirement("R-070")
def test_cross_entropy_of_a_coin_with_itself() -> None:
    v = vector("004-3.11-selfentropy")
    v.check(info.cross_entropy(v.inputs["p"], v.inputs["q"]))


@pytest.mark.requirement("R-070")
def test_cross_entropy_is_a_code_length() -> None:
    p, q = np.array([0.5, 0.25, 0.125, 0.125]), np.full(4, 0.25)
    lengths = info.surprise(p, base=2)
    np.testing.assert_array_equal(lengths, [1, 2, 3, 3])  # bits of the best code for p: 0, 10, 110, 111
    assert info.cross_entropy(p, p, base=2) == (p * lengths).sum() == 1.75
    assert info.cross_entropy(p, q, base=2) == 2  # two bits each when all are believed equal
    assert info.cross_entropy([1.0, 0.0], [0.0, 1.0]) == math.inf
    assert info.cross_entropy([1.0, 0.0], [1.0, 0.0]) == 0


@pytest.mark.requirement("R-071")
def test_worked_divergence() -> None:
    v = vector("004-3.11-kl")
    p, q = v.inputs["p"], v.inputs["q"]
    v.check({"H": info.entropy(p), "CE": info.cross_entropy(p, q), "KL": info.kl_divergence(p, q)})


@pytest.mark.requirement("R-071")
def test_worked_entropy_table() -> None:
    v = vector("004-3.11-entropy-table")
    v.check(info.entropy(v.inputs["ps"]))


@pytest.mark.requirement("R-071")
@given(pairs)
def test_divergence_is_what_cross_entropy_adds(z: np.ndarray) -> None:
    p, q = softmax(z)
    kl = info.kl_divergence(p, q)
    assert kl == pytest.approx(info.cross_entropy(p, q) - info.entropy(p), abs=1e-9)
    assert kl >= -1e-12
    assert info.kl_divergence(p, p) == 0
    if np.abs(p - q).max() > 1e-3:
        assert kl > 1e-7


@pytest.mark.requirement("R-071")
def test_divergence_is_not_symmetric_and_shares_its_minimum() -> None:
    p = np.array([0.7, 0.3])
    assert info.kl_divergence(p, [0.5, 0.5]) != pytest.approx(info.kl_divergence([0.5, 0.5], p), rel=1e-3)
    grid = np.linspace(0.01, 0.99, 99)
    q = np.stack([grid, 1 - grid], axis=1)  # (99, 2)
    truth = np.broadcast_to(p, q.shape)
    best = info.cross_entropy(truth, q).argmin()
    assert best == info.kl_divergence(truth, q).argmin()
    assert grid[best] == pytest.approx(0.7)
    assert info.kl_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert info.kl_divergence([1.0, 0.0], [0.5, 0.5]) == pytest.approx(math.log(2))


@pytest.mark.requirement("R-077")
def test_nats_bits_and_perplexity() -> None:
    assert info.nats_to_bits(math.log(2)) == 1 and info.bits_to_nats(1.0) == math.log(2)
    np.testing.assert_allclose(info.nats_to_bits([1.0, 2.0]), np.array([1.0, 2.0]) / math.log(2), rtol=1e-15)
    assert info.bits_to_nats(info.nats_to_bits(0.3)) == pytest.approx(0.3, rel=1e-15)
    loss = info.cross_entropy([0.7, 0.3], [0.5, 0.5])
    assert info.nats_to_bits(loss) == pytest.approx(info.cross_entropy([0.7, 0.3], [0.5, 0.5], base=2))
    assert info.perplexity(info.entropy(uniform(27))) == pytest.approx(27)
    assert info.perplexity(0.0) == 1


@pytest.mark.requirement("R-076")
def test_output_entropy_falls_as_a_model_learns() -> None:
    """A softmax over next symbols, trained on a periodic sequence where each symbol has one successor."""
    V = 5
    sequence = np.tile([3, 0, 4, 1, 2], 40)
    now, following = sequence[:-1], sequence[1:]
    W = np.zeros((V, V))
    history = []
    for _ in range(60):
        p = softmax(W[now])  # (T, V)
        history.append(float(info.entropy(p).mean()))
        gradient = (p - np.eye(V)[following]) / len(now)
        np.add.at(W, now, -5.0 * gradient)
    assert history[0] == pytest.approx(math.log(V), rel=0.01)
    assert history[-1] < 0.1 * math.log(V)
    assert all(later <= earlier for earlier, later in pairwise(history))
    assert info.cross_entropy(np.eye(V)[following], p).mean() < 0.1


@pytest.mark.parametrize(
    ("error", "bad", "message"),
    [
        (ConfigError, lambda: info.entropy([0.5, 0.6]), "sum to 1.1"),
        (ConfigError, lambda: info.surprise([0.5, 1.2]), "from 0.5 to 1.2"),
        (ConfigError, lambda: info.entropy([0.5, 0.5], base=1), "base 1"),
        (ShapeError, lambda: info.cross_entropy([1.0], [0.5, 0.5]), r"shapes \(1,\) and \(2,\)"),
        (ShapeError, lambda: info.kl_divergence([1.0], [0.5, 0.5]), r"shapes \(1,\) and \(2,\)"),
    ],
)
def test_bad_input(error: type[Exception], bad: Callable[[], object], message: str) -> None:
    with pytest.raises(error, match=message):
        bad()
