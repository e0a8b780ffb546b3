"""An ordered set of tokens with its inverse map."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from chainrule.errors import ConfigError, DataError, FormatError, kind_of
from chainrule.text.tokenizer import Tokenizer


class Vocabulary:
    """Tokens numbered 0 .. V-1 in the order given. No text encodes to a special token.

    >>> vocabulary = Vocabulary(["[PAD]", "low", "er"], special=["[PAD]"])
    >>> vocabulary.ids["er"], vocabulary.tokens[2]
    (2, 'er')
    >>> sorted(vocabulary.plain)
    ['er', 'low']
    """

    def __init__(self, tokens: Iterable[str], special: Iterable[str] = ()) -> None:
        self.tokens = tuple(tokens)
        self.special = tuple(special)
        self.ids = {token: id for id, token in enumerate(self.tokens)}
        if len(self.ids) < len(self.tokens):
            twice = next(token for id, token in enumerate(self.tokens) if self.ids[token] != id)
            raise DataError(f"vocabulary: token {twice!r} occurs twice (each must occur once)")
        if not self.tokens:
            raise DataError("vocabulary: got no tokens (must have at least one)")
        for name in self.special:
            self.id(name)
        self.special_ids = {name: self.ids[name] for name in self.special}
        self.plain = {token: id for token, id in self.ids.items() if token not in self.special_ids}

    def id(self, token: str) -> int:
        """The id of a token; an error if it is missing."""
        if token not in self.ids:
            raise DataError(f"vocabulary: no token {token!r} among its {len(self.tokens)} tokens")
        return self.ids[token]

    def to_dict(self) -> dict[str, list[str]]:
        return {"tokens": list(self.tokens), "special": list(self.special)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Vocabulary:
        """The vocabulary stored in the description of a tokenizer."""
        for name in ("tokens", "special"):
            value = description.get(name)
            if not isinstance(value, list) or not all(isinstance(token, str) for token in value):
                raise FormatError(f"tokenizer: {name} is {kind_of(value)} (must be a list of strings)")
        return cls(description["tokens"], description["special"])

    def __len__(self) -> int:
        return len(self.tokens)


class VocabularyTokenizer(Tokenizer):
    """A tokenizer whose ids index a vocabulary."""

    vocabulary: Vocabulary

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    @property
    def special_ids(self) -> Mapping[str, int]:
        return self.vocabulary.special_ids

    def piece(self, id: int) -> str:
        return self.vocabulary.tokens[id]

    def extended(self, names: Sequence[str]) -> Tokenizer:
        known = self.to_dict()
        more = {field: [*known[field], *names] for field in ("tokens", "special")}
        return type(self).from_dict(known | more)

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as strings."""
        return [self.vocabulary.tokens[id] for id in self.encode(text)]


def with_special(special: Iterable[str], tokens: Iterable[str]) -> Vocabulary:
    """Special tokens first, so that their ids do not depend on the text, then the tokens of the text.

    A token of the text that is spelled like a special token is dropped: the text would encode to the special token.
    """
    special = tuple(dict.fromkeys(special))
    return Vocabulary([*special, *(token for token in tokens if token not in special)], special)


def check_special(special: Collection[str] | Literal["all"], known: Mapping[str, int]) -> Collection[str]:
    """The names of the special tokens to look for in a text; an error names one that is not known."""
    names = known if special == "all" else special
    if unknown := [name for name in names if name not in known]:
        listed = ", ".join(map(repr, known)) or "none"
        raise DataError(f"encode: {unknown[0]!r} is not a special token (must be one of: {listed})")
    return names


def check_size(kind: str, vocab_size: int, needed: int, what: str) -> None:
    """Refuse a vocabulary too small for the `needed` tokens."""
    if vocab_size < needed:
        raise ConfigError.of(kind, {"vocab_size": vocab_size}, f"must be at least {needed}: {what}")
