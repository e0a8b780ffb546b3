"""The character tokenizer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import DataError, FormatError
from chainrule.text import CharTokenizer
from tests.vectors import vector

any_text = st.text(st.characters(codec=None), min_size=1)  # all of Unicode, lone surrogates included


@given(any_text)
def test_every_text_comes_back(text: str) -> None:
    tokenizer = CharTokenizer.train(text)
    ids = tokenizer.encode(text)
    assert ids.shape == (len(text),)
    assert set(ids.tolist()) == set(range(tokenizer.vocab_size))  # dense
    assert tokenizer.decode(ids) == text


@pytest.mark.requirement("R-263")
def test_the_order_of_the_vocabulary_is_kept() -> None:
    v = vector("002-bad-dab")
    letters = ["\N{SPACE}" if token == v.inputs["space"] else token for token in v.inputs["vocab"]]
    tokenizer = CharTokenizer("".join(letters))
    v.check(tokenizer.encode(v.inputs["text"]))
    assert tokenizer.decode(v.recomputed) == v.inputs["text"]


def test_training_sorts_the_characters_whatever_the_order_of_the_text() -> None:
    assert CharTokenizer.train("hello") == CharTokenizer.train("olleh")
    assert CharTokenizer.train("b a").characters == " ab"


@pytest.mark.parametrize(
    ("text", "character", "position"), [("abz", "z", 2), ("\N{GRINNING FACE}ab", "U+1F600", 0)]
)
def test_an_unknown_character_is_named_with_its_place(text: str, character: str, position: int) -> None:
    with pytest.raises(DataError, match=rf"position {position} .*2 characters") as error:
        CharTokenizer("ab").encode(text)
    assert character in str(error.value)


def test_ids_outside_the_vocabulary_are_refused() -> None:
    tokenizer = CharTokenizer("ab")
    with pytest.raises(DataError, match=r"id 2 at position 1 .*from 0 to 1"):
        tokenizer.decode([0, 2])
    with pytest.raises(DataError, match="id -1 at position 0"):
        tokenizer.decode(np.array([-1]))
    with pytest.raises(DataError, match="float64"):
        tokenizer.decode([0.5])
    with pytest.raises(DataError, match=r"\(1, 2\)"):
        tokenizer.decode([[0, 1]])


def test_nothing_encodes_to_nothing() -> None:
    tokenizer = CharTokenizer("ab")
    assert tokenizer.encode("").shape == (0,)
    assert tokenizer.decode([]) == ""


@given(any_text)
def test_a_description_survives_json(text: str) -> None:
    tokenizer = CharTokenizer.train(text)
    assert CharTokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict()))) == tokenizer


@pytest.mark.parametrize(
    "description", [{}, {"type": "bpe", "characters": "a"}, {"type": "char", "characters": 3}]
)
def test_other_descriptions_are_refused(description: dict[str, object]) -> None:
    with pytest.raises(FormatError, match="tokenizer"):
        CharTokenizer.from_dict(description)


@pytest.mark.parametrize("characters", ["", "aba"])
def test_a_vocabulary_has_each_character_once(characters: str) -> None:
    with pytest.raises(DataError, match="character tokenizer"):
        CharTokenizer(characters)
