"""Batches of sentences with a tag for each word, for a tagger.

A tag belongs to the first token of its word; the other tokens of the word have no target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from chainrule.data.batches.padded import Bucketed, Drawing, pad
from chainrule.data.batches.segmented import Segmented, segmented, text_limit
from chainrule.data.order import Items
from chainrule.errors import DataError
from chainrule.text import Tokenizer
from chainrule.text.special_tokens import SpecialIds
from chainrule.types import IGNORE, Ids

Sentence = tuple[Ids, Ids, Sequence[int]]
"""Ids (n,), the place of each word's first token (W,), and the ids of the tags (W,)."""


def encode_words(tokenizer: Tokenizer, words: Sequence[str]) -> tuple[Ids, Ids]:
    """W words -> ids (n,), and the place of each word's first token (W,)

    >>> from chainrule.data import encode_words
    >>> from chainrule.text import WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer.train("low lower", 30)
    >>> ids, firsts = encode_words(tokenizer, ["low", "lower"])
    >>> firsts.tolist() == [0, len(tokenizer.encode("low"))]
    True
    """
    parts = [ids if (ids := tokenizer.encode(word)).size else _unknown(tokenizer, word) for word in words]
    places = np.cumsum([0, *(len(part) for part in parts)])
    return np.concatenate([np.empty(0, np.int32), *parts]), places[:-1]


def _unknown(tokenizer: Tokenizer, word: str) -> Ids:
    """[UNK], for a word without tokens, such as a control character."""
    if "[UNK]" not in tokenizer.special_ids:
        rule = "must have at least one, or the tokenizer [UNK]: leave the word out"
        raise DataError(f"tagged: the word {word!r} has no tokens ({rule})")
    return np.array([tokenizer.special_ids["[UNK]"]], np.int32)


class TaggedBatches(Bucketed):
    """Tagged sentences in random order, like `LabeledBatches`; long sentences are truncated.

    >>> from chainrule.data import SpecialIds, TaggedBatches
    >>> sentences = [([7, 8, 9], [0, 2], [4, 5])]
    >>> batches = TaggedBatches(sentences, special=SpecialIds(1, 2, 3), batch_size=1, block_size=8)
    >>> (ids, mask, segments), labels = batches.batch(step=0)
    >>> ids.tolist(), labels.tolist()
    ([[1, 7, 8, 9, 2]], [[-1, 4, -1, 5, -1]])
    """

    def __init__(
        self, sentences: Sequence[Sentence], *, special: SpecialIds, **drawing: Unpack[Drawing]
    ) -> None:
        limit = text_limit(drawing["block_size"], 1)
        self.special = special
        self.texts = [np.asarray(ids, np.int32)[:limit] for ids, _, _ in sentences]
        self.labels = [_spread(np.asarray(ids), firsts, tags)[:limit] for ids, firsts, tags in sentences]
        lengths = np.array([len(row) for row in self.texts])
        self.truncated = float(np.mean([len(ids) > limit for ids, _, _ in sentences]))
        """Fraction of the sentences that are truncated."""
        super().__init__(lengths, **drawing)

    @property
    def ids(self) -> Ids:
        """All tokens of the sentences, one after another (n,)"""
        return np.concatenate(self.texts)

    @property
    def tokens(self) -> int:
        """Mean number of tags per batch."""
        words = np.mean([np.count_nonzero(row != IGNORE) for row in self.labels])
        return max(1, round(self.batch_size * float(words)))

    def rows(self, items: Items) -> tuple[Segmented, Ids]:
        """Segmented of ids (B, T), mask (B, T), segments (B, T); labels (B, T), IGNORE where no word begins"""
        rows = segmented([self.texts[item] for item in items], [None] * len(items), self.special)
        around = [np.concatenate([[IGNORE], self.labels[item], [IGNORE]]) for item in items]
        return rows, pad(around, value=IGNORE)[0]


def _spread(ids: Ids, firsts: Ids, tags: Sequence[int]) -> Ids:
    """tags (W,) at the places of their words (n,)"""
    labels = np.full(len(ids), IGNORE, np.int32)
    labels[firsts] = tags
    return labels
