"""BERT's way from text to words: clean, lowercase, strip accents, split at white space and punctuation.

Each step replaces one character at a time, so one table from a character to its replacement does all of them. The table
and its copy in C++ (native/text/wordpiece.hpp) are filled as characters turn up. Classes of characters come from
Python's Unicode database.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from chainrule import native
from chainrule.text.unicode.utf8 import to_utf8

# Ideographs are words of their own: without spaces between them a whole sentence would be one word.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # Hugging Face begins here, Google at 0x2B820
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


@dataclass(frozen=True)
class BertRules:
    """How text is changed before it is split into words; the names are those of Hugging Face's normalizer.

    >>> BertRules().split("Café №5: 你好!")
    ['cafe', '№5', ':', '你', '好', '!']
    """

    clean_text: bool = True
    """Remove control characters; turn white space into spaces."""
    handle_chinese_chars: bool = True
    """Put spaces around ideographs."""
    strip_accents: bool = True
    """Remove accents."""
    lowercase: bool = True

    def split(self, text: str) -> list[str]:
        """The words and punctuation marks of a text."""
        return [word for word in text.translate(_table(self)).split(" ") if word]

    def normalize(self, text: str) -> str:
        """The text before it is split: punctuation marks stay where they are."""
        return text.translate(_normal_table(self))

    def native_table(self, data: bytes) -> Any:
        """The C++ copy of the table, with all the characters of `data` (UTF-8)."""
        table = _native_table(self)
        for code in table.missing(data).tolist():
            table.add(code, to_utf8(self.replace(chr(code))))
        return table

    def replace(self, character: str) -> str:
        """The replacement of a character; punctuation and ideographs get spaces around them."""
        found = self.normal(character)
        return "".join(f" {c} " if is_punctuation(c) else " " if is_space(c) else c for c in found)

    def normal(self, character: str) -> str:
        """The replacement of a character before the text is split; ideographs get spaces around them."""
        if self.clean_text:
            character = clean(character)
        alone = self.handle_chinese_chars and any(a <= ord(c) <= b for c in character for a, b in IDEOGRAPHS)
        if self.strip_accents:
            parts = unicodedata.normalize("NFD", character)
            character = "".join(c for c in parts if unicodedata.category(c) != "Mn")
        if self.lowercase:
            character = "".join(c.lower() for c in character)
        return f" {character} " if alone else character


def clean(character: str) -> str:
    """Nothing for a control character, a space for white space."""
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return " " if is_space(character) else character


def is_space(character: str) -> bool:
    # Unicode calls those four control characters.
    return character.isspace() and not "\x1c" <= character <= "\x1f"


def is_punctuation(character: str) -> bool:
    """Unicode's punctuation, and the symbols of ASCII ($, +, ~, ...)."""
    return ("!" <= character <= "~" and not character.isalnum()) or unicodedata.category(character)[0] == "P"


class _Table(dict[int, str]):
    def __init__(self, replace: Callable[[str], str]) -> None:
        self.replace = replace

    def __missing__(self, code: int) -> str:
        self[code] = self.replace(chr(code))
        return self[code]


@cache
def _table(rules: BertRules) -> _Table:
    return _Table(rules.replace)


@cache
def _normal_table(rules: BertRules) -> _Table:
    return _Table(rules.normal)


@cache
def _native_table(rules: BertRules) -> Any:
    return native.kernels().BertTable()
