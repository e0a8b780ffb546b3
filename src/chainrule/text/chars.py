"""The simplest tokenizer: every character is a token.        R-263 (seed 002 Part V)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError, FormatError
from chainrule.text.tokenizer import Ids, Tokenizer


class CharTokenizer(Tokenizer):
    """Characters numbered in the order they are given; `train` takes those of a text, sorted.

    >>> from chainrule.text import CharTokenizer
    >>> tokenizer = CharTokenizer.train("hello")
    >>> tokenizer.characters
    'ehlo'
    >>> tokenizer.decode(tokenizer.encode("hole"))
    'hole'
    """

    kind = "char"

    def __init__(self, characters: str) -> None:
        if not characters:
            raise DataError("character tokenizer: got no characters (must have at least one)")
        if len(set(characters)) != len(characters):
            raise DataError(f"character tokenizer: {characters!r} repeats a character (each must occur once)")
        self.characters = characters
        self._codes = _code_points(characters)
        self._order = np.argsort(self._codes)  # encoding is a binary search in the sorted code points

    @classmethod
    def train(cls, text: str) -> CharTokenizer:
        """A tokenizer that knows exactly the characters of `text`."""
        return cls("".join(sorted(set(text))))

    @property
    def vocab_size(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> Ids:
        """text of n characters -> ids (n,)"""
        codes = _code_points(text)
        places = np.searchsorted(self._codes, codes, sorter=self._order)
        ids = self._order[places.clip(max=self.vocab_size - 1)]  # an unknown character lands on another one
        unknown = self._codes[ids] != codes
        if unknown.any():
            position = int(unknown.argmax())
            what = f"{text[position]!r} (U+{ord(text[position]):04X})"
            raise DataError(
                f"encode: unknown character {what} at position {position} "
                f"(must be one of the {self.vocab_size} characters of the text the tokenizer was trained on)"
            )
        return ids.astype(np.int32)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text of n characters"""
        array = self.check_ids(ids)
        return self._codes[array].tobytes().decode("utf-32-le", "surrogatepass")

    def to_dict(self) -> dict[str, Any]:
        """A plain description for JSON, which `from_dict` takes back."""
        return {"type": self.kind, "characters": self.characters}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> CharTokenizer:
        kind, characters = description.get("type"), description.get("characters")
        if kind != "char" or not isinstance(characters, str):
            raise FormatError(f"tokenizer: type {kind!r} (must be 'char', with its characters as a string)")
        return cls(characters)

    def __repr__(self) -> str:
        return f"<CharTokenizer, {self.vocab_size} characters>"


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
