"""Stop strings: the text before the first of them, however it is cut into tokens, and no part of one on the way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.generate.stopping import StopText
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer

TOKENIZERS: list[Tokenizer] = [
    CharTokenizer("abcé🙂"),
    BPETokenizer.train("", 256),  # bytes: characters are split
    BPETokenizer.train("abcabcaab🙂é🙂bcaabcc" * 3, 290),  # several characters in a token
]


def first_stop(text: str, stops: list[str]) -> str:
    """The definition, character by character."""
    for end in range(1, len(text) + 1):
        found = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(found)]
    return text


@settings(max_examples=150)
@given(
    st.sampled_from(TOKENIZERS),
    st.text("abcé🙂", max_size=25),
    st.lists(st.text("abcé🙂", min_size=1, max_size=4), max_size=3),
)
def test_the_text_before_the_first_stop(tokenizer: Tokenizer, text: str, stops: list[str]) -> None:
    want = first_stop(text, stops)
    stream, shown = StopText(tokenizer, stops), ""
    for id in tokenizer.encode(text).tolist():
        shown += stream.push(id)
        assert want.startswith(shown)  # nothing is ever taken back
    shown += stream.close()
    assert shown == want
    assert stream.stopped == (want != text)


def test_what_may_be_a_stop_waits_and_no_longer() -> None:
    tokenizer = CharTokenizer("abc")
    stream = StopText(tokenizer, ["ab", "abcc"])
    assert [stream.push(id) for id in tokenizer.encode("ca").tolist()] == ["c", ""]
    assert stream.close() == "a" and not stream.stopped


def test_half_a_character_at_the_end_is_replaced() -> None:
    tokenizer = TOKENIZERS[1]
    stream = StopText(tokenizer, ["x"])
    assert [stream.push(id) for id in tokenizer.encode("🙂").tolist()[:3]] == ["", "", ""]
    assert stream.close() == "\ufffd"


@pytest.mark.parametrize(
    ("text", "stops", "shown"),
    [
        ("xabc", ["bc", "abc"], "x"),  # both are complete at the same character: the longest counts
        ("xabc", ["abc", "bc"], "x"),
        ("abc", ["b", "abc"], "a"),  # complete first, though another began before it
        ("aab", ["ab", "aac"], "a"),  # a beginning that fails may hold another
        ("aaab", ["aab"], "a"),
        ("abab", ["abac", "bab"], "a"),
        ("abcab", ["abcabd"], "abcab"),  # never complete: all of it is text
    ],
)
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_stop_strings_that_overlap(tokenizer: Tokenizer, text: str, stops: list[str], shown: str) -> None:
    if "x" in text and isinstance(tokenizer, CharTokenizer):
        tokenizer = CharTokenizer("abcdx")
    elif "d" in "".join(stops) and isinstance(tokenizer, CharTokenizer):
        tokenizer = CharTokenizer("abcd")
    stream = StopText(tokenizer, stops)
    written = "".join([*map(stream.push, tokenizer.encode(text).tolist()), stream.close()])
    assert written == shown and stream.stopped == (shown != text)
