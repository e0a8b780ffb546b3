"""Tokenizers to be learned, by name: `char`, `bpe`, `bpe:4000`, `unigram:8000`, `wordpiece`.

>>> from chainrule.text.training.recipe import Recipe
>>> Recipe.of("bpe:4000"), Recipe.of("book.json")
(Recipe(kind='bpe', vocab_size=4000), None)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chainrule.errors import ConfigError, Setting
from chainrule.text.bpe import BPETokenizer
from chainrule.text.chars import CharTokenizer
from chainrule.text.tokenizer import Tokenizer
from chainrule.text.unigram import UnigramTokenizer
from chainrule.text.wordpiece import WordPieceTokenizer

KINDS: dict[str, Any] = {
    "char": CharTokenizer,
    "bpe": BPETokenizer,
    "unigram": UnigramTokenizer,
    "wordpiece": WordPieceTokenizer,
}
# Characters of text for each token of the vocabulary: a token must occur often enough to learn what it means.
CHARACTERS = 200
FEWEST, MOST = (
    500,
    8000,
)  # tokens: bytes and the commonest pairs; beyond the other a small model is mostly embeddings


class Recipe(NamedTuple):
    """A kind of tokenizer and the size of its vocabulary; without one it suits the amount of text."""

    kind: str
    vocab_size: int | None = None

    @classmethod
    def of(cls, name: str | None) -> Recipe | None:
        """What a name asks for; None if it is that of a file."""
        kind, colon, size = (name or "").partition(":")
        if kind not in KINDS:
            return None
        if colon and kind == "char":
            rule = "must be char alone: each character is a token"
            raise ConfigError(Setting("tokenizer"), f" is {name} ({rule})")
        if colon and not (size.isdecimal() and size.isascii() and len(size) < 10):
            rule = f"must be {kind}, or {kind}: and the size of the vocabulary, such as {kind}:4000"
            raise ConfigError(Setting("tokenizer"), f" is {name} ({rule})")
        return cls(kind, int(size) if colon else None)

    def fits(self, tokenizer: Tokenizer) -> bool:
        """It is of this kind and size."""
        return type(tokenizer) is KINDS[self.kind] and self.vocab_size in (None, tokenizer.vocab_size)

    def learn(self, texts: Sequence[str], special: Sequence[str] = (), workers: int = 1) -> Tokenizer:
        """A tokenizer of these texts, with these special tokens; several `workers` count their words."""
        if self.kind == "char":
            return CharTokenizer.train("".join(sorted(set().union(*texts))), special)
        size = suitable_size(sum(map(len, texts))) if self.vocab_size is None else self.vocab_size
        named = {"special_tokens": special} if special else {}
        try:
            tokenizer: Tokenizer = KINDS[self.kind].train(texts, size, **named, workers=workers)
        except ConfigError as error:
            if "vocab_size" not in error.settings:
                raise
            raise ConfigError(Setting("tokenizer"), f" is {self} ({error.rule})") from error
        return tokenizer

    def __str__(self) -> str:
        return self.kind if self.vocab_size is None else f"{self.kind}:{self.vocab_size}"


def suitable_size(characters: int) -> int:
    """The size of a vocabulary for a text of this length, in hundreds.

    >>> [suitable_size(n) for n in (10_000, 470_000, 3_500_000)]
    [500, 2300, 8000]
    """
    return min(MOST, max(FEWEST, characters // CHARACTERS // 100 * 100))
