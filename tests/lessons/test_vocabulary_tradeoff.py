"""Vocabulary size against tokens per word."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import load
from chainrule.errors import DataError
from chainrule.lessons.vocabulary_tradeoff import vocabulary_sizes
from chainrule.text import TextbookBPETokenizer


@pytest.mark.requirement("R-271")
@settings(max_examples=50)
@given(st.text("abc ", min_size=1, max_size=80).filter(str.strip))
def test_more_merges_never_take_more_tokens(text: str) -> None:
    rows = vocabulary_sizes(text, range(30))
    assert all(a.tokens_per_word >= b.tokens_per_word for a, b in pairwise(rows))
    assert [row.n_merges for row in rows] == list(range(len(rows)))


@pytest.mark.requirement("R-271")
def test_the_report_is_what_the_tokenizer_does() -> None:
    text = load("pydoc").text[:3000]
    for row in vocabulary_sizes(text, [0, 10, 100]):
        tokenizer = TextbookBPETokenizer.train(text, n_merges=row.n_merges)
        tokens = [piece for piece in tokenizer.pieces(text) if not piece.isspace()]
        assert tokenizer.vocab_size == row.vocab_size
        assert row.tokens_per_word == pytest.approx(len(tokens) / len(text.split()))


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(DataError, match="no words"):
        vocabulary_sizes(" \n", [1])
