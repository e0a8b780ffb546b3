"""The interface of every tokenizer, and how a tokenizer is built from its stored description."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text.conventions import Conventions
from chainrule.types import Ids

Spelling: TypeAlias = str | bytes


class Tokenizer(ABC):
    """Text to token ids and back. `kind` names the class in files; files of earlier versions hold the same names."""

    kind: ClassVar[str]
    _conventions: Conventions | None = None

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Ids are 0 .. vocab_size - 1."""

    @abstractmethod
    def encode(self, text: str) -> Ids:
        """text -> ids (n,) of int32"""

    @abstractmethod
    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text"""

    def encode_inside(self, text: str) -> Ids:
        """ids (n,) of a text that continues another: no start token, no space before the first word"""
        return self.encode(text)

    @property
    def special_ids(self) -> Mapping[str, int]:
        """Ids of tokens that no text encodes to, by name."""
        return {}

    @property
    def spellings(self) -> Sequence[Spelling] | None:
        """How each token is spelled, where the tokens of a text joined are the text; None where words are put apart."""
        return None

    @property
    def conventions(self) -> Conventions:
        """What its model expects around a text: as the model's files say, else by the usual names of special tokens."""
        return self._conventions or Conventions.usual(self.special_ids)

    @conventions.setter
    def conventions(self, conventions: Conventions) -> None:
        self._conventions = conventions.within(self.vocab_size)

    def extended(self, names: Sequence[str]) -> Tokenizer:
        """This tokenizer with more special tokens, which get the next ids; it encodes every text as before."""
        rule = "must be one with special tokens, such as char, bpe, unigram or wordpiece"
        raise ConfigError(f"tokenizer: a {self.kind} tokenizer has no place for {', '.join(names)} ({rule})")

    def piece(self, id: int) -> str:
        """One token, to be printed."""
        return self.decode([id])

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A description for JSON, which `from_dict` reads."""

    @classmethod
    @abstractmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Tokenizer: ...

    def check_ids(self, ids: npt.ArrayLike) -> Ids:
        """`ids` as an array (n,); an error names the first id outside the vocabulary."""
        array = np.asarray(ids)
        if array.size == 0:
            return np.empty(0, np.int32)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise DataError(f"decode: got {array.dtype} {array.shape} (must be integers of shape (n,))")
        outside = (array < 0) | (array >= self.vocab_size)
        if outside.any():
            position = int(outside.argmax())
            rule = f"must be from 0 to {self.vocab_size - 1}"
            raise DataError(f"decode: id {array[position]} at position {position} ({rule})")
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        # The C++ encoder cannot be pickled.
        return self.from_dict, (self.to_dict(),), {"_conventions": self._conventions}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.vocab_size))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.vocab_size} tokens>"


def from_dict(description: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer described by `to_dict`."""
    kinds = {cls.kind: cls for cls in _subclasses(Tokenizer) if "kind" in vars(cls)}
    kind = description.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"tokenizer: type {kind!r} (must be one of {', '.join(sorted(kinds))})")
    return kinds[kind].from_dict(description)


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
