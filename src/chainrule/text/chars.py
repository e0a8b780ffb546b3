"""The simplest tokenizer: every character is a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError, FormatError
from chainrule.text.tokenizer import Tokenizer
from chainrule.types import Ids

UNKNOWN = -1


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

    def __init__(self, characters: str, special_tokens: Sequence[str] = ()) -> None:
        if not characters:
            raise DataError("character tokenizer: got no characters (must have at least one)")
        if len(set(characters)) != len(characters):
            raise DataError(f"character tokenizer: {characters!r} repeats a character (each must occur once)")
        if len(set(special_tokens)) != len(special_tokens):
            raise DataError(
                f"character tokenizer: special tokens {list(special_tokens)} (each must occur once)"
            )
        self.characters = characters
        self.special_tokens = tuple(special_tokens)
        self._codes = _code_points(characters)
        # By code point; the last entry serves all above.
        self._ids = np.full(int(self._codes.max()) + 2, UNKNOWN, np.int32)
        self._ids[self._codes] = np.arange(len(characters))

    @classmethod
    def train(cls, text: str, special_tokens: Sequence[str] = ()) -> CharTokenizer:
        """A tokenizer of the characters of `text`; `special_tokens` get the ids after them."""
        met = np.zeros(0x110000, np.bool_)
        met[_code_points(text)] = True
        return cls(_text(np.flatnonzero(met)), special_tokens)

    @property
    def vocab_size(self) -> int:
        return len(self.characters) + len(self.special_tokens)

    @property
    def special_ids(self) -> Mapping[str, int]:
        return {name: len(self.characters) + i for i, name in enumerate(self.special_tokens)}

    def encode(self, text: str) -> Ids:
        """text of n characters -> ids (n,)"""
        codes = _code_points(text)
        ids: Ids = self._ids[np.minimum(codes, len(self._ids) - 1)]
        unknown = ids == UNKNOWN
        if unknown.any():
            position = int(unknown.argmax())
            what = f"{text[position]!r} (U+{ord(text[position]):04X})"
            raise DataError(
                f"encode: unknown character {what} at position {position} "
                f"(must be one of the {len(self.characters)} characters of the text the tokenizer was trained on; "
                "a tokenizer of bytes, such as bpe, takes any)"
            )
        return ids

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text of n characters; a special token becomes its name"""
        array = self.check_ids(ids)
        special = array >= len(self.characters)
        if special.any():
            names = [*self.characters, *self.special_tokens]
            return "".join(names[id] for id in array)
        return _text(self._codes[array])

    def extended(self, names: Sequence[str]) -> CharTokenizer:
        return CharTokenizer(self.characters, (*self.special_tokens, *names))

    def to_dict(self) -> dict[str, Any]:
        """A description for JSON, which `from_dict` reads."""
        special = {"special_tokens": list(self.special_tokens)} if self.special_tokens else {}
        return {"type": self.kind, "characters": self.characters} | special

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> CharTokenizer:
        kind, characters = description.get("type"), description.get("characters")
        if kind != "char" or not isinstance(characters, str):
            raise FormatError(f"tokenizer: type {kind!r} (must be 'char', with its characters as a string)")
        special = description.get("special_tokens", [])
        if not isinstance(special, list) or not all(isinstance(name, str) for name in special):
            raise FormatError(f"tokenizer: special_tokens {special!r} (must be a list of names)")
        return cls(characters, special)

    def __repr__(self) -> str:
        special = f", {len(self.special_tokens)} special tokens" if self.special_tokens else ""
        return f"<CharTokenizer, {len(self.characters)} characters{special}>"


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _text(codes: npt.NDArray[Any]) -> str:
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")
