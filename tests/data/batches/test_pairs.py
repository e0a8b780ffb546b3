"""Batches of sources with their targets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, PairBatches
from tests.vectors import vector

SEEDS = st.integers(0, 2**64 - 1)


@pytest.mark.requirement("R-466")
def test_the_decoder_reads_start_and_predicts_end() -> None:
    v = vector("004-12.2.7-decoder-shift")
    words = v.inputs["tokens"]  # [START] Le chat [END]
    batches = PairBatches([[5, 6]], [[1, 2]], start=0, end=3, batch_size=1, block_size=8)
    pair, targets = batches.batch(0)
    v.check({"input": [words[i] for i in pair.target[0]], "target": [words[i] for i in targets[0]]})
    assert pair.source.tolist() == [[5, 6]]


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(*[st.lists(st.integers(3, 99), max_size=9)] * 2), min_size=1), seed=SEEDS)
def test_pairs_stay_together(rows: list[tuple[list[int], list[int]]], seed: int) -> None:
    sources, targets = zip(*rows, strict=True)
    batches = PairBatches(
        sources, targets, start=1, end=2, batch_size=len(rows), block_size=10, seed=seed, pool=2
    )
    found = []
    for step in (0, 1):
        pair, wanted = batches.batch(step)
        for source, there, x, y in zip(*pair, wanted, strict=True):
            counted = y != IGNORE
            assert x[0] == 1 and y[counted][-1] == 2
            assert x[counted].tolist()[1:] == y[counted].tolist()[:-1]
            found.append((source[there].tolist(), y[counted].tolist()[:-1]))
    assert sorted(found) == sorted([*rows, *rows])
