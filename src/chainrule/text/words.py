"""Words and punctuation marks as tokens.

A run of letters, digits and underscores is a word, with apostrophes inside it (`don't`). A line end is a token; any
other character that is not white space is a token of its own; white space is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy.typing as npt

from chainrule.text.splitting.word_rules import WordNumbers, WordRule
from chainrule.text.unicode.utf8 import as_texts
from chainrule.text.vocabulary import Vocabulary, VocabularyTokenizer, check_size, with_special
from chainrule.types import Ids

UNKNOWN = "<unk>"
RULE = WordRule(re.compile(r"\w+(?:['’]\w+)*|\n|[^\w\s]"), number=0)
NO_SPACE_BEFORE = frozenset("\n.,;:!?%)]}’”")
NO_SPACE_AFTER = frozenset("\n([{“‘")


def split_words(text: str) -> list[str]:
    """
    >>> split_words("Don't (ever) go, she said.")
    ["Don't", '(', 'ever', ')', 'go', ',', 'she', 'said', '.']
    """
    return RULE.split(text)


def join_words(words: Iterable[str]) -> str:
    """Words with single spaces between them, as in print; `split_words` inverts it."""
    parts: list[str] = []
    before = "\n"
    for word in words:
        if before not in NO_SPACE_AFTER and word not in NO_SPACE_BEFORE:
            parts.append(" ")
        parts.append(word)
        before = word
    return "".join(parts)


class WordTokenizer(VocabularyTokenizer):
    """The words of a text, the most frequent first; an unknown word becomes `<unk>`.

    >>> from chainrule.text import WordTokenizer
    >>> tokenizer = WordTokenizer.train("The cat sat. The dog sat.", min_count=2)
    >>> tokenizer.vocabulary.tokens
    ('<unk>', '.', 'The', 'sat')
    >>> tokenizer.decode(tokenizer.encode("The bird sat."))
    'The <unk> sat.'
    """

    kind = "word"

    def __init__(self, vocabulary: Vocabulary, *, lowercase: bool = False) -> None:
        self.vocabulary = vocabulary
        self.lowercase = lowercase
        self._numbers = WordNumbers(RULE, vocabulary.plain, vocabulary.id(UNKNOWN))

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int | None = None,
        *,
        min_count: int = 1,
        lowercase: bool = False,
        special_tokens: Iterable[str] = (),
    ) -> WordTokenizer:
        """The words that occur at least `min_count` times, at most `vocab_size` tokens in all."""
        special = [*special_tokens, UNKNOWN]
        limit = None
        if vocab_size is not None:
            check_size("words", vocab_size, len(special), "the special tokens")
            limit = vocab_size - len(special)
        lowered = (text.lower() if lowercase else text for text in as_texts(texts))
        words = RULE.most_frequent(lowered, min_count, limit)
        return cls(with_special(special, words), lowercase=lowercase)

    def encode(self, text: str) -> Ids:
        """text -> ids (n,), one for each word and mark"""
        return self._numbers.encode(text.lower() if self.lowercase else text)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text with single spaces, none before a comma or after a bracket"""
        return join_words(self.vocabulary.tokens[id] for id in self.check_ids(ids))

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.kind, "lowercase": self.lowercase, **self.vocabulary.to_dict()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> WordTokenizer:
        return cls(Vocabulary.from_dict(description), lowercase=description.get("lowercase") is True)
