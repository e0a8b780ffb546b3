"""Accuracy, precision, recall and F1 against their definitions, counted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.tasks.labeled.confusion import Confusion
from chainrule.types import IGNORE

ANSWERS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 3, IGNORE])), max_size=40)


@settings(max_examples=100)
@given(ANSWERS)
def test_scores_are_those_of_single_labels(pairs: list[tuple[int, int]]) -> None:
    predicted, targets = (
        np.array(side, np.int32) for side in (zip(*pairs, strict=True) if pairs else ([], []))
    )
    found = Confusion.of([(predicted, targets)], tuple("abcd"))
    real = [(given, right) for given, right in pairs if right != IGNORE]
    each = []
    for label in range(4):
        right = sum(g == t == label for g, t in real)
        named, there = (sum(pair[side] == label for pair in real) for side in (0, 1))
        precision, recall = right / max(1, named), right / max(1, there)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        assert found.precision[label] == pytest.approx(precision)
        assert found.recall[label] == pytest.approx(recall)
        assert found.each_f1[label] == pytest.approx(f1)
        each += [f1] if named or there else []
    assert found.accuracy == pytest.approx(sum(g == t for g, t in real) / max(1, len(real)))
    assert found.f1 == pytest.approx(sum(each) / max(1, len(each)))
    assert found.counts.sum() == len(real)


def test_rows_are_right_and_columns_were_given() -> None:
    found = Confusion.of([(np.array([1, 1, 0]), np.array([0, 1, 0]))], ("no", "yes"))
    assert found.counts.tolist() == [[1, 1], [0, 1]]
    assert found.details()["labels"]["yes"] == {
        "precision": 0.5,
        "recall": 1.0,
        "f1": pytest.approx(2 / 3),
        "count": 1,
    }


def test_thousands_of_labels_take_no_more_memory_than_their_answers() -> None:
    """A matrix of them would have 40 billion numbers."""
    C, rng = 200_000, np.random.default_rng(0)
    right = rng.integers(C, size=1000)
    given_ = np.where(rng.random(1000) < 0.5, right, right[0])
    found = Confusion.of([(given_, right)], tuple(map(str, range(C))))
    assert found.accuracy == pytest.approx(np.mean(given_ == right))
    assert 0 < found.f1 < 1 and "confusion" not in found.details()


def test_the_commonest_mistakes_come_first() -> None:
    predicted, right = np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 2, 0])
    found = Confusion.of([(predicted, right)], ("a", "b", "c")).details()
    assert found["mistakes"] == [("a", "b", 2), ("a", "c", 1), ("b", "c", 1)]
