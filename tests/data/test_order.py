"""The order of items: permutations that need no list, reachable at any place."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import Order
from chainrule.errors import DataError

SEEDS = st.integers(0, 2**64 - 1)


@settings(max_examples=60)
@given(count=st.integers(1, 3000), seed=SEEDS, epoch=st.integers(0, 10**6))
def test_an_epoch_visits_each_item_once(count: int, seed: int, epoch: int) -> None:
    drawn = Order(count, seed=seed).draws(epoch * count, count)
    assert sorted(drawn.tolist()) == list(range(count))


@settings(max_examples=60)
@given(count=st.integers(1, 10**12), seed=SEEDS, first=st.integers(0, 10**15), replacement=st.booleans())
def test_any_draw_can_be_computed_on_its_own(count: int, seed: int, first: int, replacement: bool) -> None:
    order = Order(count, seed=seed, replacement=replacement)
    together = order.draws(first, 20)
    assert ((together >= 0) & (together < count)).all()
    again = Order(count, seed=seed, replacement=replacement)
    assert [int(again.draws(first + i, 1)[0]) for i in range(20)] == together.tolist()


def test_epochs_and_seeds_differ() -> None:
    order = Order(1000, seed=3)
    first, second, other = order.draws(0, 1000), order.draws(1000, 1000), Order(1000, seed=4).draws(0, 1000)
    assert (first == second).mean() < 0.02 and (first == other).mean() < 0.02
    assert (first == np.arange(1000)).mean() < 0.02


def test_all_permutations_of_a_few_items_are_equally_likely() -> None:
    seen = Counter(tuple(row) for row in Order(4, seed=7).draws(0, 4 * 2400).reshape(-1, 4).tolist())
    expected = 100.0
    chi2 = sum((count - expected) ** 2 / expected for count in seen.values())
    assert len(seen) == 24 and chi2 < 50  # 23 degrees of freedom: beyond 50 once in a thousand


def test_neighbors_are_independent() -> None:
    drawn = Order(10_007, seed=1).draws(0, 10_007)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(drawn, np.arange(10_007))[0, 1]) < 0.03


def test_with_replacement_items_repeat_and_all_are_equally_likely() -> None:
    drawn = Order(10, seed=1, replacement=True).draws(0, 10_000)
    counts = np.bincount(drawn, minlength=10)
    assert ((counts - 1000) ** 2 / 1000).sum() < 28  # 9 degrees of freedom
    assert len(set(drawn[:10].tolist())) < 10


@settings(max_examples=40)
@given(count=st.integers(1, 400), size=st.integers(1, 8), pool=st.integers(1, 6), seed=SEEDS)
def test_buckets_hold_the_items_of_their_pool_by_length(count: int, size: int, pool: int, seed: int) -> None:
    order, lengths = Order(count, seed=seed), np.random.default_rng(0).integers(1, 50, count)
    batches = [order.bucket(step, size, lengths, pool) for step in range(3 * pool)]
    for first in range(0, 3 * pool, pool):
        drawn = np.concatenate(batches[first : first + pool])
        assert sorted(drawn.tolist()) == sorted(order.draws(first * size, pool * size).tolist())
        spans = sorted((lengths[b].min(), lengths[b].max()) for b in batches[first : first + pool])
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_orders_are_those_of_earlier_versions() -> None:
    """A run that is taken up again must read on where it was: these numbers never change."""
    assert Order(10, seed=3).draws(7, 8).tolist() == [4, 6, 2, 4, 8, 9, 7, 1]
    assert Order(10**9, seed=3).draws(7, 4).tolist() == [366872449, 60285797, 466557738, 296523827]
    assert Order(1000, seed=3, replacement=True).draws(7, 6).tolist() == [210, 905, 363, 16, 902, 138]


def test_no_items_are_refused() -> None:
    with pytest.raises(DataError, match="0 items"):
        Order(0)
