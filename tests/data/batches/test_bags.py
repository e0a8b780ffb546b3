"""Bags: tokens and runs of them, counted; batches of labeled bags."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.data import BagBatches, NGrams
from chainrule.errors import DataError


def test_runs_of_tokens_are_features_that_order_decides() -> None:
    features = NGrams(vocab_size=10, ngrams=3, buckets=1 << 20)
    ids, counts = features([5, 6, 5, 6])
    assert dict(zip(ids[:2].tolist(), counts[:2].tolist(), strict=True)) == {5: 2, 6: 2}
    assert sorted(counts[2:].tolist()) == [1, 1, 1, 2]  # 56 twice, 65, 565 and 656
    assert set(features([5, 6])[0].tolist()) < set(ids.tolist())
    assert features([6, 5])[0].tolist() != features([5, 6])[0].tolist()
    for short in ([], [5], [5, 6]):
        assert len(features(short)[0]) == (0, 1, 3)[len(short)]


def test_a_bucket_is_never_a_token_nor_beyond_the_last() -> None:
    tokens = np.arange(1000) * 7 % 50
    ids, counts = NGrams(vocab_size=50, ngrams=4, buckets=3)(tokens)
    assert ids.max() < 53 and counts.sum() == 1000 + 999 + 998 + 997


def test_an_epoch_visits_every_text_once_with_its_label() -> None:
    features = NGrams(vocab_size=20, ngrams=1, buckets=1)
    texts = [[n] * n + [0] for n in range(1, 11)]
    batches = BagBatches(texts, range(10), features=features, batch_size=4, block_size=20, seed=3)
    found = []
    for step in range(5):
        (ids, counts), labels = batches.batch(step)
        found += [
            (row[count > 1].tolist(), int(count.sum()), int(label))
            for row, count, label in zip(ids, counts, labels, strict=True)
        ]
    want = [([n] if n > 1 else [], n + 1, n - 1) for n in range(1, 11)]
    assert sorted(found) == sorted(want * 2)
    assert batches.tokens == 4
    with pytest.raises(DataError, match="10 texts, 9 labels"):
        BagBatches(texts, range(9), features=features, batch_size=4, block_size=20)
