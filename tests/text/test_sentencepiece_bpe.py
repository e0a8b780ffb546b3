"""SentencePiece's BPE: merges by rank, bytes for what is no piece, spaces as part of the pieces."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import ChainruleError, DataError, FormatError
from chainrule.generate.sample import encoded
from chainrule.text import SentencePieceBPETokenizer, TextStream, Vocabulary, from_dict
from chainrule.text.sentencepiece_bpe import LONGEST, merge
from chainrule.text.training.bpe import merge_word
from chainrule.text.unigram import BYTES

SPECIAL = ["<unk>", "<s>"]
PIECES = ["▁", "l", "o", "w", "e", "r", "lo", "low", "▁low", "er", "we", "▁▁"]
SCORES = [-99.0] * 6 + [-1.0, -2.0, -4.0, -3.0, -2.5, -5.0]


def make(*, bytes: bool = True, **options: object) -> SentencePieceBPETokenizer:
    tokens = [*SPECIAL, *(BYTES if bytes else ()), *PIECES]
    scores = [0.0] * (len(tokens) - len(PIECES)) + SCORES
    return SentencePieceBPETokenizer.from_scores(Vocabulary(tokens, SPECIAL), scores, **options)  # type: ignore[arg-type]


def test_the_highest_score_merges_first() -> None:
    tokenizer = make()
    assert [tokenizer.piece(id) for id in tokenizer.encode("low lower")] == ["▁low", "▁low", "er"]
    assert [tokenizer.piece(id) for id in tokenizer.encode("wer")] == ["▁", "we", "r"]  # not w er


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="low er▁ö🙂\n", max_size=30), st.booleans(), st.booleans())
def test_every_text_comes_back(text: str, prefix: bool, start: bool) -> None:
    tokenizer = make(prefix=prefix, start="<s>" if start else None)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text.replace("▁", " ")  # the same to this tokenizer
    assert (ids[:1].tolist() == [1]) or not start
    stream = TextStream(tokenizer)
    assert "".join([*map(stream.push, ids.tolist()), stream.close()]) == tokenizer.decode(ids)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 4), max_size=40),
    st.dictionaries(
        st.tuples(st.integers(0, 6), st.integers(0, 6)),
        st.tuples(st.integers(0, 3), st.integers(5, 6)),
        max_size=9,
    ),
)
def test_merging_is_what_the_reference_does(ids: list[int], merges: dict) -> None:  # type: ignore[type-arg]
    assert merge(ids, merges) == merge_word(ids, merges)


def test_a_long_word_takes_no_quadratic_time() -> None:
    tokenizer = make()
    start = time.monotonic()
    tokenizer.encode("lower" * 20_000)
    assert time.monotonic() - start < 5


def test_what_follows_a_text_has_nothing_before_it() -> None:
    tokenizer = make(start="<s>")
    assert [tokenizer.piece(id) for id in tokenizer.encode_inside("low")] == ["low"]
    assert encoded(tokenizer, "").tolist() == [1]
    stream = TextStream(tokenizer, after=encoded(tokenizer, ""))
    assert [stream.push(id) for id in tokenizer.encode("low low")[1:].tolist()] == ["low", " low"]


def test_it_comes_back_from_its_description() -> None:
    for tokenizer in (make(), make(bytes=False, prefix=False, start="<s>")):
        assert from_dict(tokenizer.to_dict()) == tokenizer
    scored = SentencePieceBPETokenizer.from_scores(make().vocabulary, make().scores())
    assert scored == make()


def test_a_character_that_is_nothing_is_unknown_without_bytes() -> None:
    assert make(bytes=False).encode("lö").tolist()[-1] == 0
    bare = SentencePieceBPETokenizer(Vocabulary(["a"]), [], prefix=False)
    with pytest.raises(DataError, match="unknown character 'b'"):
        bare.encode("ab")


@pytest.mark.parametrize(
    ("tokens", "merges", "options", "rule"),
    [
        (["a", "b"], [(0, 1, 0)], {}, "gives no piece"),
        (["a", "b"], [(0, 7, 0)], {}, "gives no piece"),
        (["a", "b"], [(-1, 0, 0)], {}, "gives no piece"),
        (["a", "▁", "a▁"], [(0, 1, 0)], {}, "has a space inside"),
        (["a", "<0x00>"], [], {}, "1 byte tokens"),
        (["a"], [], {"start": "a"}, "must be a special token"),
    ],
)
def test_what_makes_no_sense_is_refused(tokens: list[str], merges: list, options: dict, rule: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ChainruleError, match=rule):
        SentencePieceBPETokenizer(Vocabulary(tokens), merges, **options)


@pytest.mark.parametrize(
    "change", [{"merges": None}, {"merges": [[1, 2]]}, {"merges": [["a", 1, 2]]}, {"start": 3}, {"tokens": 3}]
)
def test_a_damaged_description_is_refused(change: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(FormatError):
        from_dict(make().to_dict() | change)


def test_a_piece_as_long_as_a_book_is_refused() -> None:
    with pytest.raises(FormatError, match="a piece of 513 characters"):
        SentencePieceBPETokenizer.from_scores(Vocabulary(["a" * (LONGEST + 1)]), [0.0])
