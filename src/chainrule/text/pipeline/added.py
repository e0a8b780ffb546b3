"""Tokens that are found in a text before it is cut: special tokens, and words that were added to a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from chainrule.errors import FormatError
from chainrule.text.unicode.expressions import compiled, know

WORD, SPACE = r"\w", r"\s"
know(WORD, SPACE)


@dataclass(frozen=True)
class AddedToken:
    """A token as `tokenizer.json` lists it."""

    id: int
    content: str
    single_word: bool = False
    """Found only where no letter or digit stands beside it."""
    lstrip: bool = False
    """Takes the white space before it."""
    rstrip: bool = False
    normalized: bool = False
    """Found in the normalized text, not in the text as it is."""
    special: bool = False
    """Found only when asked for."""

    @classmethod
    def from_dict(cls, entry: Any) -> AddedToken:
        name, id = (entry.get("content"), entry.get("id")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or type(id) is not int:
            raise FormatError(f"added token {str(entry)[:80]} (must have a content and an id)")
        flags = {field.name: bool(entry.get(field.name)) for field in fields(cls) if field.type == "bool"}
        return cls(id, name, **flags)

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Finder:
    """Finds tokens in a text: the leftmost, of those the longest."""

    def __init__(self, tokens: Mapping[str, AddedToken]) -> None:
        self.tokens = {content: token for content, token in tokens.items() if content}
        names = sorted(self.tokens, key=len, reverse=True)
        self._expression = re.compile("|".join(map(re.escape, names)) if names else "(?!)")

    def split(self, text: str) -> Iterator[tuple[str, AddedToken | None]]:
        """The text in pieces; a piece that is a token comes with it. No other piece is empty."""
        end = 0
        for match in self._expression.finditer(text):
            token = self.tokens[match[0]]
            begin, stop = match.span()
            if begin < end or (token.single_word and _touches_word(text, begin, stop)):
                continue
            if token.lstrip:
                begin = max(end, begin - _spaces(reversed(text[end:begin])))
            if token.rstrip:
                stop += _spaces(text[stop:])
            if begin > end:
                yield text[end:begin], None
            yield text[begin:stop], token
            end = stop
        if end < len(text):
            yield text[end:], None


def _touches_word(text: str, begin: int, stop: int) -> bool:
    beside = text[max(begin - 1, 0) : begin] + text[stop : stop + 1]
    return compiled(WORD).search(beside) is not None


def _spaces(characters: Iterable[str]) -> int:
    count = 0
    for character in characters:
        if not compiled(SPACE).match(character):
            break
        count += 1
    return count
