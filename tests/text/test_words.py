"""The word tokenizer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from chainrule.text import WordTokenizer, from_dict
from chainrule.text.words import join_words, split_words
from tests.text.strategies import a_text


def test_words_marks_and_line_ends() -> None:
    assert split_words("It's 3.5 kg,\tisn't it?\n") == [
        "It's",
        "3",
        ".",
        "5",
        "kg",
        ",",
        "isn't",
        "it",
        "?",
        "\n",
    ]
    assert join_words(["(", "a", "b", ")", ",", "c", "!", "\n", "d"]) == "(a b), c!\nd"


@settings(max_examples=200)
@given(a_text)
def test_printed_words_are_the_same_words(text: str) -> None:
    words = split_words(text)
    assert split_words(join_words(words)) == words


@settings(max_examples=50)
@given(a_text)
def test_known_words_come_back(text: str) -> None:
    tokenizer = WordTokenizer.train(text)
    ids = tokenizer.encode(text)
    assert tokenizer.encode(tokenizer.decode(ids)).tolist() == ids.tolist()
    assert set(ids.tolist()) == set(range(1, tokenizer.vocab_size))


def test_the_most_frequent_words_are_kept() -> None:
    text = "a a a b b c c d"
    assert WordTokenizer.train(text, vocab_size=3).vocabulary.tokens == ("<unk>", "a", "b")
    assert WordTokenizer.train(text, min_count=3).vocabulary.tokens == ("<unk>", "a")
    assert WordTokenizer.train(["A a", "B"], lowercase=True).encode("A b C").tolist() == [1, 2, 0]


@pytest.mark.parametrize("lowercase", [False, True])
def test_a_saved_tokenizer_reads_capitals_as_before(lowercase: bool) -> None:
    tokenizer = WordTokenizer.train("The cat saw the CAT", lowercase=lowercase)
    again = from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    ids = tokenizer.encode("the The CAT cat")
    assert again.encode("the The CAT cat").tolist() == ids.tolist()
    assert (len(set(ids.tolist())) == 2) == lowercase
    assert from_dict({**tokenizer.to_dict(), "lowercase": not lowercase}) != tokenizer
