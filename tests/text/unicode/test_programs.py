"""Expressions as programs: what each part of the dialect matches, and what is not part of it."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import native
from chainrule.errors import FormatError
from chainrule.text.unicode import programs
from chainrule.text.unicode.expressions import ranges_of

needs_extension = pytest.mark.skipif(not native.available(), reason="the extension was not built")


def cut(text: str, *steps: str) -> list[str]:
    data = text.encode()
    classes = native.kernels().expression_classes(*programs.compiled(steps))
    ends = native.kernels().split_words(classes, 3, data).tolist()
    return [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]


@needs_extension
@pytest.mark.parametrize(
    ("expression", "text", "words"),
    [
        ("a", "baab", "b|a|a|b"),
        ("a+", "baab", "b|aa|b"),
        ("a{2,3}", "aaaaaaa", "aaa|aaa|a"),
        ("ab|a", "aab", "a|ab"),
        ("a|ab", "aab", "a|a|b"),  # the first alternative, not the longest
        ("[ab]*b", "abab", "abab"),
        ("[ab]*b", "abaa", "ab|aa"),  # gives back
        ("[éa]+a", "ééaéé", "ééa|éé"),  # characters of two bytes
        ("a(?:b|bc)?d", "abcdad", "abcd|ad"),  # the second way
        ("x(?i:s|ll)", "xsxSxſxLlxl", "xs|xS|xſ|xLl|xl"),
        ("[ ]+(?!b)", "  b   a", " | b|   |a"),
        (r"\s+(?!\S)", "a  b ", "a| | b| "),
        (r"a\z", "aa", "a|a"),
        (r"a+$", "aab aa\naa", "aab |aa|\n|aa"),
        (r"[^\p{L}\s]+", "a1é,!\tb", "a|1|é|,!|\tb"),
        (r"\P{L}", "a1b", "a|1|b"),
        (r"[\]\-a-c]+", "d]-bd", "d|]-b|d"),
    ],
)
def test_what_is_matched(expression: str, text: str, words: str) -> None:
    assert cut(text, expression) == words.split("|")


@needs_extension
def test_expressions_cut_what_those_before_left() -> None:
    assert cut("ab12c", r"\p{L}+", r"\p{N}", "b") == ["a", "b", "1", "2", "c"]


@needs_extension
def test_bytes_that_are_no_text_are_characters_of_their_own() -> None:
    classes = native.kernels().expression_classes(*programs.compiled([r"[^\p{L}]é|\p{L}+"]))
    data = b"\xe4\xb8\xc3\xa9a\xff\xc3\xa9"
    assert native.kernels().split_words(classes, 3, data).tolist() == [1, 4, 5, 8]


def test_a_category_is_a_set_of_ranges() -> None:
    one, other = (programs.Set(frozenset(ranges_of("L")), negated) for negated in (False, True))
    codes = np.array([ord(c) for c in "aé中1 "])
    assert one.holds(codes).tolist() == [True, True, True, False, False]
    assert (one.holds(codes) != other.holds(codes)).all()


@pytest.mark.parametrize("expression", ["a*", "a?b?", "(?:a)?", "$"])
def test_what_may_match_nothing_is_refused(expression: str) -> None:
    with pytest.raises(FormatError, match="must match at least one"):
        programs.compiled([expression])


def test_a_negated_class_in_a_set_is_refused() -> None:
    with pytest.raises(FormatError, match="a negated class in a set"):
        programs.compiled([r"[\S]"])


@needs_extension
def test_the_extension_refuses_what_is_no_program() -> None:
    kernels = native.kernels()
    ranges, sets, code, alternatives, begins = programs.compiled(["a|b+c"])
    for changed, message in (
        ((ranges, sets[:9], code, alternatives, begins), "sets of 256 kinds"),
        ((ranges, sets, code[:-1], alternatives, begins), "end in MATCH"),
        ((ranges, sets, code * np.int32(9), alternatives, begins), "end in MATCH"),
        ((ranges, sets, code, alternatives + np.int32(100), begins), "end in MATCH"),
    ):
        with pytest.raises(ValueError, match=message):
            kernels.expression_classes(*(np.ascontiguousarray(x) for x in changed))
    with pytest.raises(ValueError, match="pattern must be"):
        kernels.split_words(kernels.character_classes(ranges), 3, b"a")
