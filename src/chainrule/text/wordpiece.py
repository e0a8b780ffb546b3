"""WordPiece, the tokenizer of BERT.

A word is cut from left to right into the longest pieces that the vocabulary holds; pieces inside a word begin with
`##`. A word that cannot be cut this way, or has more than a hundred characters, becomes `[UNK]`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.errors import FormatError
from chainrule.text.merging import WordIds, longest_match
from chainrule.text.splitting.normalize import BertRules
from chainrule.text.training.wordpiece import PREFIX, Learner, NativeLearner
from chainrule.text.unicode.utf8 import joined, to_utf8
from chainrule.text.vocabulary import Vocabulary, VocabularyTokenizer, check_size, with_special
from chainrule.types import Ids

UNKNOWN = "[UNK]"
SPECIAL = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
MOST_CHARACTERS = 100  # of a word
GLUED = (".", "?", "!", ",")  # decoding puts no space before them


class WordPieceTokenizer(VocabularyTokenizer):
    """Words by BERT's rules, pieces by the longest match.

    >>> from chainrule.text import Vocabulary, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer(Vocabulary(["[UNK]", "un", "##aff", "##able", "!"], ["[UNK]"]))
    >>> tokenizer.pieces("Unaffable!")
    ['un', '##aff', '##able', '!']
    >>> tokenizer.decode(tokenizer.encode("Unaffable!"))
    'unaffable!'
    """

    kind = "wordpiece"

    def __init__(self, vocabulary: Vocabulary, *, rules: BertRules | None = None) -> None:
        self.vocabulary = vocabulary
        self.rules = rules or BertRules()
        self._unknown = vocabulary.id(UNKNOWN)
        self._longest = max(map(len, vocabulary.tokens))
        self._words = WordIds(self.longest_match)

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int,
        *,
        min_count: int | None = None,
        special_tokens: Iterable[str] = SPECIAL,
        rules: BertRules | None = None,
        workers: int = 1,
    ) -> WordPieceTokenizer:
        """Start from characters, merge the pair with the best score until there are `vocab_size` tokens.

        Pairs that occur fewer than `min_count` times are not merged: two rare letters that met once have the score 1,
        the highest possible. Without `min_count` the bound starts high and is halved, down to 2, whenever no pair is
        left above it: frequent pairs merge before rare ones, and the score decides among them. Several `workers` count
        the words, with the same result.
        """
        rules = rules or BertRules()
        learner = NativeLearner(texts, rules, workers) if native.available() else Learner(texts, rules)
        start = with_special([*special_tokens, UNKNOWN], learner.characters)
        check_size("WordPiece", vocab_size, len(start), "special tokens and characters")
        # A token spelled like a special one is not added.
        limit = vocab_size - len(start) + len(start.special)
        learned = learner.tokens(limit, None if min_count is None else max(1, min_count))
        tokens = list(dict.fromkeys([*start.tokens, *learned]))[:vocab_size]
        return cls(Vocabulary(tokens, start.special), rules=rules)

    @classmethod
    def of_words(
        cls, texts: Iterable[str], vocab_size: int, *, min_count: int = 1, rules: BertRules | None = None
    ) -> WordPieceTokenizer:
        """Whole words, those that occur at least `min_count` times, the most frequent first; all others are [UNK].

        >>> from chainrule.text import WordPieceTokenizer
        >>> WordPieceTokenizer.of_words(["a cat", "a cat sat"], 20, min_count=2).pieces("A cat sat")
        ['a', 'cat', '[UNK]']
        """
        rules = rules or BertRules()
        counts = Counter(word for text in texts for word in rules.split(text))
        words = [word for word, count in counts.most_common() if count >= min_count and word not in SPECIAL]
        check_size("WordPiece", vocab_size, len(SPECIAL), "special tokens")
        return cls(Vocabulary([*SPECIAL, *words][:vocab_size], SPECIAL), rules=rules)

    def encode(self, text: str) -> Ids:
        """text -> ids (n,); the caller adds special tokens such as [CLS]"""
        if native.available():
            data = to_utf8(text)
            self.rules.native_table(data)
            return self._encoder.encode(data)
        return np.array([id for word in self.rules.split(text) for id in self._words[word]], np.int32)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text with single spaces between words; case and accents are lost"""
        parts: list[str] = []
        for id in self.check_ids(ids):
            token = self.vocabulary.tokens[id]
            if token.startswith(PREFIX) and parts:
                parts.append(token.removeprefix(PREFIX))
            else:
                parts.append(token if not parts or token.startswith(GLUED) else f" {token}")
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.kind, "rules": asdict(self.rules), **self.vocabulary.to_dict()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> WordPieceTokenizer:
        rules = description.get("rules")
        known = {field.name for field in fields(BertRules)}
        if (
            not isinstance(rules, dict)
            or rules.keys() != known
            or not all(v in (0, 1) for v in rules.values())
        ):
            raise FormatError(
                f"wordpiece: rules are {rules!r} (must be true or false for {', '.join(sorted(known))})"
            )
        return cls(Vocabulary.from_dict(description), rules=BertRules(**rules))

    @cached_property
    def _encoder(self) -> Any:
        plain = self.vocabulary.plain
        tokens, ends = joined([to_utf8(token) if token in plain else b"" for token in self.vocabulary.tokens])
        table = self.rules.native_table(b"")
        return native.kernels().WordPieceEncoder(
            table, tokens, ends, PREFIX.encode(), self._unknown, MOST_CHARACTERS
        )

    def longest_match(self, word: str) -> list[int]:
        """The ids of a word's pieces, or [UNK]: the reference for the native encoder."""
        too_long = len(word) > MOST_CHARACTERS
        found = None if too_long else longest_match(word, self.vocabulary.plain, self._longest, PREFIX)
        return [self._unknown] if found is None else found
