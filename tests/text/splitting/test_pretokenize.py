"""The extension's words against the regular expressions that define them, in `re` and in the package `regex`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chainrule import native
from chainrule.errors import ConfigError
from chainrule.text import BPETokenizer
from chainrule.text.splitting import pretokenize
from chainrule.text.splitting.patterns import PATTERNS, check_pattern
from chainrule.text.splitting.pretokenize import native_steps, split, split_reference
from chainrule.text.unicode.expressions import characters, translate

# Characters on which the patterns turn, more often than others.
TURNING = st.sampled_from(list("aSsltvedRm'’ſéǅʰ中한ー1²٣ \t\n\r\x0b\x1c\x85\u3000!?-_/$|（。🙂\u200d\u0301"))
mixed_text = st.lists(st.one_of(TURNING, st.characters(codec="utf-8")), max_size=40).map("".join)
any_bytes = st.one_of(st.binary(max_size=40), mixed_text.map(str.encode))


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=200)
@given(any_bytes)
@example(b"\xe4\xb8 \xe4\xb8\xad\xf0\x9f\x99 \xed\xa0\x80\xc0\x80\xf5")
def test_words_are_those_of_the_expression_and_make_up_the_text(pattern: str, data: bytes) -> None:
    words = split(data, pattern)
    assert words == split_reference(data, pattern)
    assert b"".join(words) == data
    assert all(words)


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=200)
@given(mixed_text)
def test_words_are_those_of_the_package_regex(pattern: str, text: str) -> None:
    """It knows a newer Unicode: characters that it has other categories for are left out."""
    regex = pytest.importorskip("regex")
    text = "".join(c for c in text if not _is_new(regex, c))
    pieces = [text]
    for step in PATTERNS[pattern]:
        expression = regex.compile(step.replace(r"\z", r"\Z"), regex.MULTILINE)
        cut: list[str] = []
        for piece in pieces:
            end = 0
            for match in expression.finditer(piece):
                cut += [piece[end : match.start()], match[0]]
                end = match.end()
            cut.append(piece[end:])
        pieces = [piece for piece in cut if piece]
    assert [word.decode() for word in split(text.encode(), pattern)] == pieces


def _is_new(regex: Any, character: str) -> bool:
    names = ("L", "N", "M", "P", "S", "Lu", "Ll", "Lt", "Lm", "Lo")
    ours = [bool(re.fullmatch(translate(rf"\p{{{name}}}"), character)) for name in names]
    return ours != [bool(regex.fullmatch(rf"\p{{{name}}}", character)) for name in names]


@pytest.mark.parametrize(
    ("pattern", "text", "words"),
    [
        ("gpt2", "I'll say  'HELLO'S'  1234!\n\n x", "I|'ll| say| | '|HELLO|'|S|'| | 1234|!|\n\n| x"),
        ("gpt4", "I'LL say  (hello)  1234!\n\n x", "I|'LL| say| | (|hello|)| | |123|4|!\n\n| x"),
        ("gpt4", "x = y\t\tz\n  \n  w", "x| =| y|\t|\tz|\n  \n| | w"),
        ("gpt4", "end \n  ", "end| \n  "),
        ("llama3", "end \n  ", "end| \n|  "),
    ],
)
def test_examples(pattern: str, text: str, words: str) -> None:
    assert [word.decode() for word in split(text.encode(), pattern)] == words.split("|")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_long_text_has_the_same_words_in_one_piece_and_in_many(pattern: str) -> None:
    text = "It's a line of 12345 words,  with\tspaces \n\n" * 400
    whole = split(text.encode(), pattern)
    assert whole == split_reference(text.encode(), pattern)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_long_runs_take_no_more_than_linear_time(pattern: str) -> None:
    """Ten times as long, of one kind each: a quadratic scanner would take minutes."""
    for character in ("a", "A", "中", "1", " ", "\n", "!", "\u0301"):
        if pattern == "deepseek-llm" and character == " ":  # \s+$ is tried at each of them
            continue
        data = (character * 300_000 + "x").encode()
        assert b"".join(split(data, pattern)) == data


PARTS = [*"x1!/中é한ー()$。\u0301\t\n ", "ab", "Cd", "'s", "'LL", "  ", " \n\n", "23", "4567", "..."]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_threads_share_a_text_between_words(pattern: str) -> None:
    text = "".join(np.random.default_rng(1).choice(PARTS, size=150_000))
    tokenizer, ids = BPETokenizer.train(text[:20_000], 400, pattern=pattern), dict[bytes, list[int]]()
    words = split(text.encode(), pattern)
    for word in set(words):
        ids[word] = tokenizer.encode_word(word)
    assert len(text.encode()) > 1 << 18  # more than one thread's part
    assert tokenizer.encode(text).tolist() == [id for word in words for id in ids[word]]


@pytest.mark.skipif(not native.available(), reason="the extension was not built")
def test_every_known_pattern_is_split_by_the_extension() -> None:
    for name in PATTERNS:
        before, splitter = native_steps(name)
        assert not before and splitter is not None


@pytest.mark.filterwarnings("ignore:expression")
@pytest.mark.skipif(not native.available(), reason="the extension was not built")
def test_steps_after_an_unknown_expression_are_split_by_the_extension() -> None:
    pattern = check_pattern((r"[xy]+", *PATTERNS["smollm"]))
    before, splitter = native_steps(pattern)
    assert before == (r"[xy]+",) and splitter is not None
    assert split(b"axb 12", pattern) == [b"a", b"x", b"b", b" ", b"1", b"2"]


def test_kinds_of_characters_do_not_overlap() -> None:
    kinds = (characters(name) for name in ("L", "N", "space"))
    letters, numbers, spaces = kinds
    assert not letters & numbers and not letters & spaces and not numbers & spaces
    assert {len(letters), len(numbers), len(spaces)} == {141028, 1911, 25}  # Unicode 16.0


def test_an_unknown_pattern_is_named() -> None:
    with pytest.raises(ConfigError, match=r"got 'gpt5' .*gpt2, gpt4, llama3"):
        pretokenize.split(b"a", "gpt5")
