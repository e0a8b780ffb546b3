"""Regular expressions with Unicode's categories: known ones in `re`, others in the package `regex`."""

from __future__ import annotations

import itertools
import sys
import unicodedata
import warnings

import pytest

from chainrule.errors import DataError, FormatError
from chainrule.text.unicode import expressions
from chainrule.text.unicode.categories import CATEGORIES


def test_categories_are_those_of_pythons_database_where_that_knows_the_character() -> None:
    """Python's database is older: a character that it has not assigned (Cn) may be new."""
    for name in sorted({*CATEGORIES, "L", "N"} - {"space"}):
        members = expressions.characters(name)
        for code in range(0x30000):
            theirs = unicodedata.category(chr(code))
            if theirs != "Cn":
                changed = code in (0x1734, 0x180F, 0x1B4E, 0x1B4F, 0x1B7F, 0x19DA)
                assert (chr(code) in members) == theirs.startswith(name) or changed, hex(code)


def test_ranges_are_in_order_and_none_touches_the_next() -> None:
    for name in (*CATEGORIES, "L", "N", "word"):
        ranges = expressions.ranges_of(name)
        assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges)), name


def found(expression: str, text: str, *, ruby: bool = False) -> list[str]:
    return [text[begin:end] for begin, end in expressions.spans(expression, ruby=ruby)(text)]


def test_a_known_expression_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    expressions.know(r"[^\s\p{Lu}]+\p{Nd}|\S\z")
    assert found(r"[^\s\p{Lu}]+\p{Nd}|\S\z", "ab1 Cd2 x") == ["ab1", "d2", "x"]


def test_another_expression_runs_as_it_is_and_says_so_once() -> None:
    with pytest.warns(UserWarning, match="is not one of the known ones: it runs as it is, slower"):
        assert found(r"\p{Han}|b+", "a中bb") == ["中", "bb"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found(r"\p{Han}|b+", "文") == ["文"]


@pytest.mark.filterwarnings("ignore:expression")
def test_sets_may_hold_sets() -> None:
    assert found(r"[a[bc]]+", "xabc") == ["abc"] and found(r"[\w&&[^b]]+", "abc") == ["a", "c"]
    assert found(r"[\[a]+", "x[a") == ["[a"]


@pytest.mark.filterwarnings("ignore:expression")
def test_anchors_stand_at_lines_for_ruby_and_at_the_text_for_others() -> None:
    assert found("^a|a$", "ab\na\nba", ruby=True) == ["a", "a", "a"]
    assert found("^a|a$", "ab\na\nba") == ["a", "a"]
    assert expressions.has_anchor("a$") and not expressions.has_anchor(r"[$^a]\$\^")


def test_without_the_package_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(FormatError, match=r"pip install 'chainrule\[data\]'") as error:
        expressions.spans(r"never seen [x-z]+")
    assert "never seen" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("expression", "message"), [("(unclosed", "must be a regular expression"), ("a" * 30_000, "at most")]
)
def test_an_expression_that_cannot_be_used_is_refused(expression: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        expressions.spans(expression)
    assert len(str(error.value)) < 250


@pytest.mark.filterwarnings("ignore:expression")
def test_an_expression_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "PATIENCE", 0.05)
    with pytest.raises(DataError, match="it backtracks too much"):
        found(r"(?:a|aa|a?a)+[bc]", "a" * 60)


def test_a_complement_inside_a_set_is_refused() -> None:
    with pytest.raises(FormatError, match=r"\\S in a set"):
        expressions.translate(r"[a\S]")
