"""Batches of texts with labels, and of pairs that mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.data import LabeledBatches, SpecialIds, TwinBatches
from chainrule.errors import DataError

SPECIAL = SpecialIds(cls=1, sep=2, mask=3, pad=0)


def test_an_epoch_visits_every_text_once_with_its_label() -> None:
    texts = [np.arange(4, 4 + n) for n in range(1, 11)]
    batches = LabeledBatches(texts, range(10), special=SPECIAL, batch_size=4, block_size=8, seed=3, pool=5)
    found = []
    for step in range(5):
        (ids, mask, segments), labels = batches.batch(step)
        assert ids.shape[1] <= 8 and not segments.any()
        found += [(row[m].tolist(), int(label)) for row, m, label in zip(ids, mask, labels, strict=True)]
    want = [([1, *text[:6].tolist(), 2], label) for label, text in enumerate(texts)]
    assert sorted(found) == sorted(want * 2)


def test_evaluation_visits_every_text_once() -> None:
    batches = LabeledBatches(
        [[5] * n for n in (4, 1, 3)], [0, 1, 0], special=SPECIAL, batch_size=2, block_size=8
    )
    (first, labels), (last, label) = batches.once()
    assert first.ids.tolist() == [[1, 5, 2, 0, 0], [1, 5, 5, 5, 2]] and labels.tolist() == [1, 0]
    assert last.ids.tolist() == [[1, 5, 5, 5, 5, 2]] and label.tolist() == [0]


def test_pairs_share_a_row() -> None:
    batches = LabeledBatches(
        [[5] * 9, [6]], [0, 1], [[7], [8] * 9], special=SPECIAL, batch_size=2, block_size=8
    )
    (ids, _, segments), labels = batches.batch(0)
    rows = dict(zip(labels.tolist(), zip(ids.tolist(), segments.tolist(), strict=True), strict=True))
    assert rows[0] == ([1, 5, 5, 5, 5, 2, 7, 2], [0, 0, 0, 0, 0, 0, 1, 1])
    assert rows[1] == ([1, 6, 2, 8, 8, 8, 8, 2], [0, 0, 0, 1, 1, 1, 1, 1])


def test_twins_stay_together() -> None:
    texts, partners = [[n] * 2 for n in range(4, 10)], [[n] * 3 for n in range(4, 10)]
    batches = TwinBatches(texts, partners, special=SPECIAL, batch_size=3, block_size=8, seed=5)
    for step in range(4):
        twins, targets = batches.batch(step)
        assert (twins.ids[:, 1] == twins.partner_ids[:, 1]).all() and (targets == 0).all()
        assert twins.mask.all() and twins.partner_ids.shape == (3, 5)


def test_texts_without_labels_are_refused() -> None:
    with pytest.raises(DataError, match=r"2 texts, 1 labels \(must be as many\)"):
        LabeledBatches([[1], [2]], [0], special=SPECIAL, batch_size=1, block_size=8)
    with pytest.raises(DataError, match=r"2 texts, 2 labels, 1 second texts"):
        LabeledBatches([[1], [2]], [0, 1], [[3]], special=SPECIAL, batch_size=1, block_size=8)
