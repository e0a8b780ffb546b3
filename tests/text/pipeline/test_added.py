"""Tokens that are found in a text before it is cut."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.errors import FormatError
from chainrule.text.pipeline.added import AddedToken, Finder


def pieces(text: str, *tokens: AddedToken) -> list[tuple[str, int | None]]:
    found = Finder({token.content: token for token in tokens}).split(text)
    return [(piece, None if token is None else token.id) for piece, token in found]


def test_the_longest_token_is_found_first() -> None:
    assert pieces("a<s>>b", AddedToken(1, "<s>"), AddedToken(2, "<s>>")) == [
        ("a", None),
        ("<s>>", 2),
        ("b", None),
    ]
    assert pieces("") == [] and pieces("ab") == [("ab", None)]
    assert pieces("ab", AddedToken(1, "")) == [("ab", None)]


def test_a_token_takes_the_spaces_around_it() -> None:
    both = AddedToken(1, "<m>", lstrip=True, rstrip=True)
    assert pieces("a \n<m> \u3000b", both) == [("a", None), (" \n<m> \u3000", 1), ("b", None)]
    assert pieces("<m> <m>x", both) == [("<m> ", 1), ("<m>", 1), ("x", None)]


def test_a_single_word_has_no_letters_beside_it() -> None:
    word = AddedToken(1, "ab", single_word=True)
    assert pieces("ab xab ab_ ab!", word) == [("ab", 1), (" xab ab_ ", None), ("ab", 1), ("!", None)]


def test_entries_are_read_and_written() -> None:
    entry = AddedToken(7, "<s>", special=True, lstrip=True).to_dict()
    assert AddedToken.from_dict(entry) == AddedToken(7, "<s>", special=True, lstrip=True)


@pytest.mark.parametrize(
    "entry", [3, {}, {"id": "x", "content": "a"}, {"id": True, "content": "a"}, {"id": 1}]
)
def test_an_entry_without_content_or_id_is_refused(entry: Any) -> None:
    with pytest.raises(FormatError, match="must have a content and an id"):
        AddedToken.from_dict(entry)
