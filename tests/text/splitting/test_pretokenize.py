"""The scanners in C++ against the regular expressions that define them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.text.splitting import pretokenize
from chainrule.text.splitting.patterns import PATTERNS
from chainrule.text.splitting.pretokenize import split, split_reference
from chainrule.text.unicode.ranges import LETTERS, NUMBERS, WHITE_SPACE

# Characters on which the patterns turn, more often than others.
TURNING = st.sampled_from(list("aSsltvedRm'’ſé中1²٣ \t\n\r\x0b\x1c\x85\u3000!?-_🙂\u200d\u0301"))
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


def test_kinds_of_characters_do_not_overlap() -> None:
    kinds = [
        {
            code
            for word in text.split()
            for code in range(int(word.split("-")[0], 16), int(word.split("-")[-1], 16) + 1)
        }
        for text in (LETTERS, NUMBERS, WHITE_SPACE)
    ]
    letters, numbers, spaces = kinds
    assert not letters & numbers and not letters & spaces and not numbers & spaces
    assert {len(letters), len(numbers), len(spaces)} == {141028, 1911, 25}  # Unicode 16.0


def test_an_unknown_pattern_is_named() -> None:
    with pytest.raises(ConfigError, match=r"got 'gpt5' .*gpt2, gpt4, llama3"):
        pretokenize.split(b"a", "gpt5")
