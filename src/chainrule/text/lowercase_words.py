"""Lowercased words as tokens, for word vectors.

A word is a run of letters of any script, with apostrophes inside (`don't`), in lower case. Spaces, digits and
punctuation are dropped, so decoding gives the words back and not the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text.splitting.word_rules import WordNumbers, WordRule
from chainrule.text.tokenizer import Tokenizer
from chainrule.types import Ids

UNKNOWN = "<unk>"  # no word of a text can look like this
RULE = WordRule(re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*"), number=1)


def split_words(text: str) -> list[str]:
    """The words of a text, in lower case; a typographic apostrophe becomes a plain one.

    >>> from chainrule.text.lowercase_words import split_words
    >>> split_words("Don't panic: it’s 42!")
    ["don't", 'panic', "it's"]
    """
    return RULE.split(_plain(text))


def _plain(text: str) -> str:
    return text.lower().replace("’", "'")


class LowercaseWordTokenizer(Tokenizer):
    """Lowercased words, numbered by frequency; id 0 is any word outside the vocabulary.

    >>> from chainrule.text import LowercaseWordTokenizer
    >>> tokenizer = LowercaseWordTokenizer.train("the cat and the dog and the fish", min_count=2)
    >>> tokenizer.words
    ('<unk>', 'the', 'and')
    >>> tokenizer.encode("The dog and the cat")
    array([1, 0, 2, 1, 0], dtype=int32)
    """

    kind = "bare-word"

    def __init__(self, words: Sequence[str]) -> None:
        if not words or words[0] != UNKNOWN:
            raise DataError(f"word tokenizer: the first word is {list(words[:1])} (must be {UNKNOWN!r})")
        self.words = tuple(words)
        ids = {word: i for i, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            twice = next(word for i, word in enumerate(self.words) if ids[word] != i)
            raise DataError(f"word tokenizer: {twice!r} occurs twice (each word must occur once)")
        self._numbers = WordNumbers(RULE, ids, unknown=0)

    @classmethod
    def train(cls, text: str, min_count: int = 5, max_size: int | None = None) -> LowercaseWordTokenizer:
        """The words that occur at least `min_count` times; at most `max_size` tokens, `<unk>` included."""
        if min_count < 1:
            raise ConfigError.of("word tokenizer", {"min_count": min_count}, "must be at least 1")
        if max_size is not None and max_size < 2:
            raise ConfigError.of("word tokenizer", {"max_size": max_size}, "must be at least 2")
        limit = None if max_size is None else max_size - 1
        return cls.of(RULE.most_frequent(_plain(text), min_count, limit))

    @classmethod
    def of(cls, words: Sequence[str]) -> LowercaseWordTokenizer:
        """With these words, in this order, after the unknown one."""
        return cls([UNKNOWN, *words])

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    @property
    def unknown_id(self) -> int:
        """The id of every word that is not in the vocabulary."""
        return 0

    def encode(self, text: str) -> Ids:
        """text of n words -> ids (n,)"""
        return self._numbers.encode(_plain(text))

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> the words with spaces between them"""
        return " ".join(self.words[i] for i in self.check_ids(ids))

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.kind, "words": list(self.words)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> LowercaseWordTokenizer:
        words = description.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise FormatError("tokenizer: type 'bare-word' without its words (must be a list of strings)")
        return cls(words)
