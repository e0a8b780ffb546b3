"""The highest of many scores in C++: to the letter what sorting all of them gives, ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import chainrule as cr
from chainrule import native
from chainrule.generate import Sampling, choose
from chainrule.generate.processors import best, fewest, likeliest, typical
from chainrule.random import generator

extension = native.kernels()
Logits = np.ndarray[Any, np.dtype[np.float32]]


def normal(seed: int, n: int, scale: float) -> Logits:
    return (scale * np.random.default_rng(seed).normal(size=n)).astype(np.float32)


scores = st.one_of(
    arrays(np.float32, st.integers(1, 30), elements=st.floats(-30, 30, width=32)),
    arrays(np.float32, st.integers(1, 60), elements=st.sampled_from([0.0, -0.0, 1.0, 2.5, -4.0])),  # ties
    st.builds(normal, st.integers(0, 99), st.integers(1, 6000), st.sampled_from([0.01, 1.0, 4.0])),
)
shares = st.floats(0, 0.9999)
some = settings(max_examples=80, deadline=None)


def by_sorting(order: list[int], weights: Logits, mass: float) -> int:
    """How many in this order reach the mass"""
    cumulative = np.cumsum(weights[order], dtype=np.float64)
    return int(np.searchsorted(cumulative, min(mass, cumulative[-1]))) + 1


@some
@given(scores, shares)
def test_the_fewest_that_have_a_mass_are_those_that_sorting_finds(score: Logits, share: float) -> None:
    weights = np.exp(score - score.max())
    mass = share * float(weights.sum(dtype=np.float64))
    order = np.argsort(-score, kind="stable").tolist()
    count = by_sorting(order, weights, mass)
    assert extension.fewest(score, weights, mass) == (count, score[order[count - 1]])


@some
@given(scores, shares)
def test_the_likeliest_are_those_that_sorting_finds(score: Logits, share: float) -> None:
    weights = cr.ops.softmax(score)
    order = np.argsort(-score, kind="stable").tolist()
    count = by_sorting(order, weights, share * float(weights.sum(dtype=np.float64)))
    assert likeliest(score, share) == (count, score[order[count - 1]])
    hidden = np.append(np.float32(-np.inf), score)
    assert likeliest(hidden, share) == (count, score[order[count - 1]])


@some
@given(scores, shares, st.integers(0, 99))
def test_weights_need_not_follow_the_scores(score: Logits, share: float, seed: int) -> None:
    """As for typical sampling: of equal scores the first weigh in first."""
    weights = np.random.default_rng(seed).integers(0, 8, size=len(score)).astype(np.float32)
    weights[score.argmax()] += 1
    order = np.argsort(-score, kind="stable").tolist()
    count = by_sorting(order, weights, share * weights.sum(dtype=np.float64))
    assert fewest(score, weights, share * float(weights.sum())) == (count, score[order[count - 1]])


@some
@given(scores, shares)
def test_the_reference_finds_the_same(score: Logits, share: float) -> None:
    weights = np.exp(score - score.max())
    mass = share * float(weights.sum(dtype=np.float64))
    fast = fewest(score, weights, mass)
    with cr.backend("reference"):
        assert fewest(score, weights, mass) == fast


@some
@given(scores, st.integers(1, 70), st.integers(1, 3))
def test_the_highest_are_the_first_of_all_sorted(score: Logits, n: int, rows: int) -> None:
    table = np.stack([np.roll(score, r) for r in range(rows)])
    want = np.argsort(-table, axis=1, kind="stable")[:, :n]
    assert best(table, n).tolist() == want.tolist()
    with cr.backend("reference"):
        assert best(table, n).tolist() == want.tolist()


@pytest.mark.parametrize("options", [{}, {"top_p": 0.9}, {"typical": 0.9}, {"top_k": 500, "top_p": 0.5}])
def test_draws_are_those_of_the_reference(options: dict[str, Any]) -> None:
    sampling = Sampling(temperature=0.9, **options)
    for seed in range(40):
        logits = normal(seed, 5003, 3)
        logits[::3] = np.round(logits[::3])  # ties
        fast = choose(logits, generator("sample", seed, seed=1), sampling)
        with cr.backend("reference"):
            assert choose(logits, generator("sample", seed, seed=1), sampling) == fast


def test_equal_and_impossible_scores() -> None:
    flat = np.zeros(50_257, np.float32)
    assert likeliest(flat, 0.9) == (45_232, 0)
    assert likeliest(flat, 0.0) == (1, 0)
    some = np.where(np.arange(50_257) % 5 == 0, flat, np.float32(-np.inf))
    assert likeliest(some, 0.5) == (5026, 0)
    assert np.isfinite(typical(some, 0.5)).sum() == 5026
    assert likeliest(np.array([7.0], np.float32), 0.3) == (1, 7)


def test_the_same_for_any_number_of_threads() -> None:
    table = np.stack([normal(seed, 4001, 2) for seed in range(40)])
    found = []
    for threads in (1, 2, 3):
        native.set_threads(threads)
        found.append(best(table, 9).tolist())
    assert found[0] == found[1] == found[2]


def test_the_extension_refuses_what_does_not_fit() -> None:
    ones = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="weights has 2 elements, expected 3"):
        extension.fewest(ones, ones[:2], 1.0)
    for score in (-ones, ones[:0]):
        with pytest.raises(ValueError, match="at least 0"):
            extension.fewest(score, score, 1.0)
    for score, share in ((ones[:0], 0.5), (np.float32(-np.inf) * ones, 0.5), (ones, 1.5), (ones, np.nan)):
        with pytest.raises(ValueError, match="from 0 to 1"):
            extension.likeliest(score, share)
    for shape in ((1, 4), (2, 2)):
        with pytest.raises(ValueError, match="a row for each"):
            extension.highest(np.empty(shape, np.int64), ones[None])
