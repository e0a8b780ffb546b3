"""Rows of packed documents: every pair once, and no target in another document."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, Encoded, PackedBatches
from chainrule.errors import DataError

SEEDS = st.integers(0, 2**64 - 1)


def documents(*lengths: int) -> Encoded:
    """Documents of which every token is another."""
    ids = np.arange(sum(lengths), dtype=np.int32)
    return Encoded(ids, np.cumsum([0, *lengths]))


def pairs_of(inputs: np.ndarray, targets: np.ndarray) -> Counter[tuple[int, int]]:
    counted = targets != IGNORE
    return Counter(zip(inputs[counted].tolist(), targets[counted].tolist(), strict=True))


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(0, 40), min_size=1, max_size=30), block=st.integers(1, 16), seed=SEEDS)
def test_packing_keeps_every_pair_and_no_target_crosses_a_boundary(
    lengths: list[int], block: int, seed: int
) -> None:
    encoded = documents(*lengths)
    want = Counter(pair for row in encoded for pair in pairwise(row.tolist()))
    if not want:
        with pytest.raises(DataError, match="has two tokens"):
            PackedBatches(encoded, batch_size=1, block_size=block)
        return
    batches = PackedBatches(encoded, batch_size=1, block_size=block, seed=seed)
    found: Counter[tuple[int, int]] = Counter()
    for step in range(len(batches.rows)):
        inputs, targets = batches.batch(step)
        segments = batches.segments(step)
        assert inputs.shape == targets.shape == segments.shape == (1, block)
        assert ((segments > 0) == (targets != IGNORE)).all()
        found += pairs_of(inputs, targets)
        document = np.searchsorted(encoded.starts, inputs[0], side="right")
        for segment in range(1, segments.max() + 1):
            assert len(set(document[segments[0] == segment].tolist())) == 1
    assert found == want


def test_packing_leaves_little_room() -> None:
    encoded = documents(*np.random.default_rng(0).integers(2, 100, 1000).tolist())
    batches = PackedBatches(encoded, batch_size=8, block_size=128)
    assert sum(batches.lengths) / (len(batches.rows) * 128) > 0.99
    assert batches.tokens == pytest.approx(8 * 128, rel=0.01)
