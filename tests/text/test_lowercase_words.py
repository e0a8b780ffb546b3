"""Words as tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text import LowercaseWordTokenizer, from_dict
from chainrule.text.lowercase_words import UNKNOWN, split_words


def test_the_rule() -> None:
    text = "Don't stop: Émile's 3 naïve_dogs — 'quoted' x2, ДА！ it’s"
    assert split_words(text) == [
        "don't", "stop", "émile's", "naïve", "dogs", "quoted", "x", "да", "it's",
    ]  # fmt: skip


def test_training_counts_orders_and_cuts() -> None:
    text = "b b b a a a c c d"
    assert LowercaseWordTokenizer.train(text, min_count=2).words == (UNKNOWN, "a", "b", "c")
    assert LowercaseWordTokenizer.train(text, min_count=1, max_size=3).words == (UNKNOWN, "a", "b")
    assert LowercaseWordTokenizer.train("", min_count=1).vocab_size == 1


@settings(max_examples=100)
@given(st.text())
def test_any_text_can_be_encoded_and_known_words_come_back(text: str) -> None:
    tokenizer = LowercaseWordTokenizer.train(text, min_count=1)
    words = split_words(text)
    ids = tokenizer.encode(text)
    assert ids.dtype.name == "int32" and len(ids) == len(words) and (ids != tokenizer.unknown_id).all()
    assert tokenizer.decode(ids) == " ".join(words)
    assert split_words(" ".join(words)) == words
    assert from_dict(tokenizer.to_dict()) == tokenizer


def test_words_not_known_are_one_word() -> None:
    tokenizer = LowercaseWordTokenizer.train("a a b b", min_count=2)
    ids = tokenizer.encode("b zebra a quagga")
    assert ids.tolist() == [2, tokenizer.unknown_id, 1, tokenizer.unknown_id]
    assert tokenizer.decode(ids) == f"b {UNKNOWN} a {UNKNOWN}"


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="min_count is 0"):
        LowercaseWordTokenizer.train("a", min_count=0)
    with pytest.raises(ConfigError, match="max_size is 1"):
        LowercaseWordTokenizer.train("a", max_size=1)
    with pytest.raises(DataError, match="the first word is"):
        LowercaseWordTokenizer(["a"])
    with pytest.raises(DataError, match="'a' occurs twice"):
        LowercaseWordTokenizer([UNKNOWN, "a", "a"])
    with pytest.raises(FormatError, match="must be a list of strings"):
        from_dict({"type": "bare-word", "words": "abc"})
