"""The Unigram tokenizer: lossless on raw text, native equal to the reference, and training that finds the pieces."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import load
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text import UnigramTokenizer, Vocabulary
from chainrule.text.unigram import BYTES
from tests.text.reference import needs_extension, without_extension
from tests.text.strategies import a_text

TEXT = load("pydoc").text[:20_000]
LEARNED = UnigramTokenizer.train(TEXT, 600)
PLAIN = UnigramTokenizer.train(TEXT, 300, byte_fallback=False, prefix=False)
# A vocabulary with pieces that reach over spaces and line ends: the text is cut as a whole.
CROSSING = UnigramTokenizer(
    Vocabulary(["<unk>", "▁", "a", "b", "a▁b", "\nb", "▁▁a", "aa"], ["<unk>"]),
    [0, -2, -2.5, -3, -4, -3.5, -5, -4.5],
)
TOKENIZERS = {"learned": LEARNED, "plain": PLAIN, "crossing": CROSSING}


@pytest.mark.requirement("R-270")
@settings(max_examples=300)
@given(a_text)
def test_every_text_comes_back(text: str) -> None:
    ids = LEARNED.encode(text)
    assert LEARNED.decode(ids) == text
    assert ids.dtype == np.int32


@pytest.mark.requirement("R-270")
def test_spaces_and_letters_of_any_script_come_back() -> None:
    tokenizer = UnigramTokenizer.train(["你好 世界  naïve café\n\tДа  нет " * 20, TEXT], 700)
    for text in (
        "  two  spaces ",
        "你好",
        "naïve\n\n café",
        "▁ is a character too",
        " ",
        "▁",
        "\ud800 lone",
        "नमस्ते",
    ):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.pieces("世界") == ["▁世界"]  # the space before a word is part of its first piece


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150)
@given(text=st.one_of(a_text, st.text("ab \n☃", max_size=40)))
def test_the_native_encoder_equals_the_reference(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text).tolist()
    with without_extension():
        assert tokenizer.encode(text).tolist() == ids


@settings(max_examples=60)
@given(st.text("ab ", min_size=1, max_size=9))
def test_no_other_cut_is_better(text: str) -> None:
    """Against every way to cut a short text."""
    scores = {
        t.replace("▁", " "): s for t, s in zip(CROSSING.vocabulary.tokens, CROSSING.scores, strict=True)
    }
    del scores["<unk>"]
    padded = " " + text

    def value(cuts: list[int]) -> float:
        return sum(scores.get(padded[i:j], -math.inf) for i, j in pairwise([0, *cuts, len(padded)]))

    places = range(1, len(padded))
    every = ([p for p, chosen in zip(places, f"{mask:0{len(text)}b}", strict=True) if chosen == "1"]
             for mask in range(2 ** len(text)))  # fmt: skip
    best = max(map(value, every))
    assert sum(CROSSING.scores[id] for id in CROSSING.encode(text)) == pytest.approx(best)


@needs_extension
def test_a_million_equal_letters_are_no_trouble() -> None:
    tokenizer = UnigramTokenizer.train("a" * 1_000_000, 300)
    assert 16 * len(tokenizer.encode("a" * 1_000_000)) < 1_000_100
    assert LEARNED.decode(LEARNED.encode("☃" * 100_000)) == "☃" * 100_000


def test_without_bytes_strangers_in_a_row_are_one_unknown_token() -> None:
    assert PLAIN.pieces("☃☃a☃").count("<unk>") == 2
    assert PLAIN.decode(PLAIN.encode("☃☃")) == "<unk>"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert LEARNED.decode([LEARNED.vocabulary.ids["<0xFF>"]]) == "\ufffd"
    assert LEARNED.decode(LEARNED.encode("<0x41><unk>")) == "<0x41><unk>"  # text like any other


def test_a_small_vocabulary_names_what_it_needs() -> None:
    with pytest.raises(
        ConfigError, match=r"vocab_size is 270 \(must be at least 3\d\d: special tokens, bytes and"
    ):
        UnigramTokenizer.train(TEXT, 270)
    with pytest.raises(DataError, match="no text"):
        UnigramTokenizer.train("", 300)


@pytest.mark.parametrize(
    ("tokens", "scores", "message"),
    [
        (["<unk>", "a"], [0.0], "1 scores for 2 tokens"),
        (["<unk>", "a"], [0.0, math.nan], "not finite"),
        (["<unk>", "▁a", " a"], [0.0, -1, -1], "differ only in"),
        (["<unk>", *BYTES[:3]], [0.0, 0, 0, 0], "3 byte tokens"),
        (["a"], [0.0], "no token '<unk>'"),
    ],
)
def test_what_is_no_vocabulary_is_refused(tokens: list[str], scores: list[float], message: str) -> None:
    special = [token for token in tokens if token == "<unk>"]
    with pytest.raises(DataError, match=message):
        UnigramTokenizer(Vocabulary(tokens, special), scores)
    with pytest.raises(FormatError, match="scores must be a list"):
        UnigramTokenizer.from_dict({"tokens": tokens, "special": special, "scores": "many"})
