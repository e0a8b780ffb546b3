"""Merging in n log n against the plain loop, and words that are remembered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chainrule.text.merging import WordIds, merge
from chainrule.text.training.bpe import merge_word

pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))


@given(st.lists(st.integers(0, 2), max_size=30), st.lists(pairs, unique=True, max_size=6))
def test_merging_is_that_of_the_reference(ids: list[int], order: list[tuple[int, int]]) -> None:
    merges = {pair: (rank, 3 + rank) for rank, pair in enumerate(order)}
    assert merge(ids, merges) == merge_word(ids, merges)


def test_words_are_computed_once_and_long_ones_not_kept() -> None:
    asked: list[str] = []

    def ids(word: str) -> list[int]:
        asked.append(word)
        return [len(word)]

    words = WordIds(ids)
    long = "x" * (WordIds.LONGEST + 1)
    assert [words["ab"], words["ab"], words[long], words[long]] == [[2], [2], [257], [257]]
    assert asked == ["ab", long, long] and len(words) == 1
    words.LIMIT = 1  # type: ignore[misc]
    assert words["c"] == [1] and list(words) == ["c"]
