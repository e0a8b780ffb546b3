"""The seed's byte pair encoding, with its worked example."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text import TextbookBPETokenizer, Vocabulary
from chainrule.text.textbook_bpe import trace, trace_table
from chainrule.text.training.merges import Pieces, apply_merge
from chainrule.text.training.textbook_bpe import WORD_OR_SPACE, spell
from tests.text.growth import LINEAR, growth
from tests.text.reference import needs_extension, without_extension
from tests.text.strategies import any_text
from tests.vectors import vector

CORPUS = ["low", "lower", "lowest"]


@pytest.mark.requirement("R-265")
def test_the_worked_example() -> None:
    v = vector("004-7.4.1-bpe-init")
    v.check(list(TextbookBPETokenizer.train(v.inputs["corpus"], n_merges=0).vocabulary.tokens))

    v = vector("004-7.4.1-bpe-counts0")
    pieces = Pieces({tuple(word): 1 for word in v.inputs["words"]})
    v.check([pieces.pairs[a, b] for a, b in v.inputs["pairs"]])

    steps = list(trace(CORPUS))
    v = vector("004-7.4.1-bpe-merge1")
    v.check({"first_pair": list(steps[0].pair), "words": steps[0].words})
    v = vector("004-7.4.1-bpe-merge2")
    assert steps[1].pair == tuple(v.inputs["pair"])
    v.check({"count": steps[1].count, "words": steps[1].words})
    v = vector("004-7.4.1-bpe-merge3")
    assert steps[1].words == v.inputs["words"]
    v.check(list(steps[2].pair))


@pytest.mark.requirement("R-265", "R-274")
def test_all_merges_of_the_worked_example() -> None:
    v = vector("der-bpe-full")
    steps = list(trace(v.inputs["corpus"]))
    v.check({"merges": [[*step.pair, step.count] for step in steps], "final": steps[-1].words})
    rows = [row.split() for row in trace_table(steps).splitlines()[1:]]
    wanted = [
        [str(n), a, "+", b, str(count), a + b] for n, (a, b, count) in enumerate(v.recomputed["merges"], 1)
    ]
    assert [row[:6] for row in rows] == wanted
    assert rows[-1][6:] == ["13", "low", "|", "lower", "|", "lowest"]


@pytest.mark.requirement("R-266")
def test_new_text_is_encoded_by_the_merges_in_order() -> None:
    v = vector("der-bpe-encode")
    merges = [(a, b) for a, b in v.inputs["merges"]]
    characters = dict.fromkeys(v.inputs["text"])
    tokenizer = TextbookBPETokenizer(Vocabulary([*characters, *(a + b for a, b in merges)]), merges)
    v.check(tokenizer.pieces(v.inputs["text"]))
    assert tokenizer.decode(tokenizer.encode(v.inputs["text"])) == v.inputs["text"]


@pytest.mark.requirement("R-266")
@settings(max_examples=100)
@given(any_text, st.booleans(), st.integers(0, 30))
def test_every_text_comes_back(text: str, end_mark: bool, n_merges: int) -> None:
    tokenizer = TextbookBPETokenizer.train(text + " a", n_merges=n_merges, end_mark=end_mark)
    for string in (text, text[::-1], "a</w> a"[:1]):
        assert tokenizer.decode(tokenizer.encode(string)) == string


@pytest.mark.requirement("R-267")
def test_a_full_character_base_represents_everything() -> None:
    """With all 256 values of a byte as characters, no byte string is unknown."""
    rng = random.Random(0)
    base = "".join(map(chr, range(256)))
    tokenizer = TextbookBPETokenizer.train([base, "playing player"], n_merges=10)
    for _ in range(100):
        text = rng.randbytes(rng.randrange(200)).decode("latin-1")
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.pieces("unplayable")) < len("unplayable")


@pytest.mark.requirement("R-268")
def test_related_words_share_a_piece() -> None:
    words = ["play", "played", "player", "playing"]
    tokenizer = TextbookBPETokenizer.train(words, n_merges=3)
    assert all("play" in tokenizer.pieces(word) for word in words)


some_words = st.lists(st.text("aab\u00e9\u4f60\ud800", min_size=1, max_size=9), max_size=12).map(" ".join)


@settings(max_examples=200)
@given(
    st.lists(any_text | some_words, max_size=4),
    st.booleans(),
    st.none() | st.integers(0, 40),
    st.lists(st.sampled_from(["<unk>", "ab", "aa", "\u00e9b"]), max_size=3),
)
def test_native_training_and_encoding_equal_the_reference(
    texts: list[str], end_mark: bool, n_merges: int | None, special: list[str]
) -> None:
    def outcome() -> list[object]:
        tokenizer = TextbookBPETokenizer.train(
            ["a b", *texts], n_merges=n_merges, end_mark=end_mark, special_tokens=["<unk>", *special]
        )
        return [tokenizer.to_dict(), *(tokenizer.encode(text).tolist() for text in ["b\u00fca ", *texts])]

    fast = outcome()
    with without_extension():
        assert outcome() == fast


def test_white_space_is_that_of_python() -> None:
    """A letter before every character of two planes: does the scanner end a word there as `re` does?"""
    text = "".join(f"a{chr(code)}" for code in range(0x20000))
    tokenizer = TextbookBPETokenizer.train(text, n_merges=0, end_mark=True)
    spelled = [piece for word in WORD_OR_SPACE.findall(text) for piece in spell(word, end_mark=True)]
    assert tokenizer.encode(text).tolist() == [tokenizer.vocabulary.ids[piece] for piece in spelled]


def test_the_end_mark_tells_endings_from_beginnings() -> None:
    tokenizer = TextbookBPETokenizer.train("er her per erase", n_merges=2, end_mark=True)
    assert tokenizer.pieces("er erase") == ["er</w>", " ", "er", "a", "s", "e", "</w>"]
    assert tokenizer.decode(tokenizer.encode("per er")) == "per er"
    with pytest.raises(ConfigError, match="end mark '</w>'"):
        TextbookBPETokenizer.train("a</w>", end_mark=True)
    with pytest.raises(ConfigError, match=r"n_merges -1 \(must be at least 0"):
        TextbookBPETokenizer.train("a", n_merges=-1)


def test_unknown_characters_are_named_or_marked() -> None:
    with pytest.raises(DataError, match=r"unknown character 'x' .*<unk>"):
        TextbookBPETokenizer.train(CORPUS).encode("lowx")
    tokenizer = TextbookBPETokenizer.train(CORPUS, special_tokens=["<unk>"])
    assert tokenizer.decode(tokenizer.encode("lowx")) == "low<unk>"


def test_a_word_of_many_equal_letters_is_no_trouble() -> None:
    tokenizer = TextbookBPETokenizer.train("a" * 64)
    assert len(tokenizer.encode("a" * 200_000)) <= 200_000 // 64 + 6


@needs_extension
def test_a_million_equal_letters_are_no_trouble() -> None:
    assert growth(lambda n: TextbookBPETokenizer.train("a" * n).encode("a" * n), 62_500) < LINEAR


A_PAIR = st.tuples(*[st.sampled_from(["a", "b", "ab", "ba"])] * 2)


@settings(max_examples=200)
@given(st.text("ab", max_size=40), st.lists(A_PAIR, unique=True, max_size=8))
def test_merges_go_in_order_wherever_they_fit(word: str, merges: list[tuple[str, str]]) -> None:
    """As the definition says it: the first merge that occurs, over the whole word, then look again."""
    tokens = dict.fromkeys(["a", "b", "ab", "ba", *map("".join, merges)])
    pieces = [*word]
    while found := [pair for pair in merges if pair in set(pairwise(pieces))]:
        pieces = apply_merge(pieces, found[0], "".join(found[0]))
    tokenizer = TextbookBPETokenizer(Vocabulary(tokens), merges)
    assert tokenizer.pieces(word) == pieces
    assert [tokenizer.piece(id) for id in tokenizer.encode(word)] == pieces
    long = word * (200 // (len(word) or 1))  # long words are merged otherwise
    assert [tokenizer.piece(id) for id in tokenizer.encode(long)] == tokenizer.pieces(long)


@pytest.mark.parametrize("merges", [None, [["a"]], [["a", 3]]])
def test_broken_merges_are_refused(merges: object) -> None:
    with pytest.raises(FormatError, match="list of pairs of strings"):
        TextbookBPETokenizer.from_dict({"merges": merges, "tokens": ["a"], "special": []})
    with pytest.raises(DataError, match=r"merge 'a' \+ 'b'"):
        TextbookBPETokenizer.from_dict({"merges": [["a", "b"]], "tokens": ["a"], "special": []})
