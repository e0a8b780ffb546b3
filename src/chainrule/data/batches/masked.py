"""Batches for pre-training a BERT: masked words, and if asked pairs of texts, half of them consecutive.

Documents are cut into windows, and rows are packed with them, [CLS] window [SEP] window [SEP] ..., so that short
documents leave little padding. With next sentence a row is [CLS] A [SEP] B [SEP]: one window, cut in two at the end of
a sentence; in half of the rows B comes from another document. The masked words are drawn anew in each epoch.
(Devlin et al. 2018; Liu et al. 2019)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chainrule.data.batches.packed import pack, stretches
from chainrule.data.batches.padded import Mask
from chainrule.data.batches.segmented import Segmented, segmented, sequences, text_limit
from chainrule.data.batches.source import BatchSource
from chainrule.data.encoded import Encoded
from chainrule.data.order import Order, check_sizes
from chainrule.errors import ConfigError, DataError
from chainrule.random import generator
from chainrule.text.special_tokens import SpecialIds
from chainrule.types import IGNORE, Ids


class Masked(NamedTuple):
    """The inputs of a BERT in pre-training."""

    ids: Ids  # (B, T)
    mask: Mask  # (B, T), True where a token is
    segments: Ids  # (B, T)
    follows: Ids  # (B,): 1 if the second text follows the first, 0 if not, IGNORE without a second text


@dataclass(frozen=True)
class MaskingRule:
    """Which tokens are to be predicted, and how they are hidden.

    >>> from chainrule.data import MaskingRule
    >>> MaskingRule().fractions["hidden"]
    0.12
    """

    select: float = 0.15
    """Fraction of tokens to predict."""
    hide: float = 0.8
    """Fraction of these that become [MASK]."""
    swap: float = 0.1
    """Fraction of these that become a random token; the rest stays unchanged."""

    def __post_init__(self) -> None:
        if not 0 < self.select <= 1:
            raise ConfigError(f"masking: select {self.select} (must be above 0 and at most 1)")
        if not (self.hide >= 0 and self.swap >= 0 and self.hide + self.swap <= 1):
            rule = "must not be negative, and at most 1 together"
            raise ConfigError(f"masking: hide {self.hide}, swap {self.swap} ({rule})")

    @property
    def fractions(self) -> dict[str, float]:
        """Fractions of all tokens: selected, and of these hidden, swapped, kept."""
        kept = 1 - self.hide - self.swap
        parts = {"selected": 1.0, "hidden": self.hide, "swapped": self.swap, "kept": kept}
        return {name: self.select * fraction for name, fraction in parts.items()}

    def __call__(
        self, ids: Ids, text: Mask, words: Ids, mask_id: int, rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """ids (B, T), text (B, T) True where a token may be selected -> ids (B, T) to read, targets (B, T)

        Random tokens are drawn from `words`.
        """
        selected = text & (rng.random(ids.shape) < self.select)
        fate = rng.random(ids.shape)
        swapped = selected & (fate >= self.hide) & (fate < self.hide + self.swap)
        read = np.where(selected & (fate < self.hide), mask_id, ids)
        read = np.where(swapped, rng.choice(words, ids.shape), read)
        return read.astype(np.int32), np.where(selected, ids, IGNORE).astype(np.int32)


class MaskedBatches(BatchSource):
    """Windows of documents in random order, each once per epoch; step n is a pure function of (seed, n).

    `ends` are the ids that end a sentence, such as those of "." and "?"; without them a sentence may end anywhere. With
    `pool` > 1 the rows of a batch are similar in length.

    >>> from chainrule.data import Encoded, MaskedBatches, SpecialIds
    >>> documents = Encoded.of([range(10, 40), range(40, 70)])
    >>> sizes = {"vocab_size": 70, "batch_size": 4, "block_size": 16}
    >>> batches = MaskedBatches(documents, special=SpecialIds(1, 2, 3), **sizes)
    >>> inputs, targets = batches.batch(step=0)
    >>> inputs.ids.shape, targets.shape, inputs.ids[:, 0].tolist(), inputs.follows.shape
    ((4, 16), (4, 16), [1, 1, 1, 1], (4,))
    """

    def __init__(
        self,
        documents: Encoded,
        *,
        special: SpecialIds,
        vocab_size: int,
        batch_size: int,
        block_size: int,
        next_sentence: bool = False,
        ends: Collection[int] = (),
        rule: MaskingRule | None = None,
        seed: int = 0,
        pool: int = 1,
    ) -> None:
        check_sizes(batch_size, block_size, pool)
        self.documents = documents
        self.special = special
        self.batch_size = batch_size
        self.block_size = block_size
        self.next_sentence = next_sentence
        self.rule = rule or MaskingRule()
        self.seed = seed
        self.pool = pool
        self.words = np.setdiff1d(np.arange(vocab_size), special)
        texts = 1 + next_sentence  # of a row
        starts, lengths = stretches(documents.starts[:-1], documents.lengths, text_limit(block_size, texts))
        enough = lengths >= texts
        if not enough.any():
            none = f"none of {len(documents)} has {texts} tokens"
            raise DataError(f"documents: {none} (must be at least one document)")
        self.starts, self.lengths = starts[enough], lengths[enough]  # of the windows
        self.of = np.searchsorted(documents.starts, self.starts, side="right") - 1  # the document of each
        if next_sentence and len(self.starts) < 2:
            raise DataError(
                "documents: a single window (next sentence needs a second: give more text, a smaller block_size, "
                "or turn next_sentence off)"
            )
        ending = np.isin(documents.ids, list(ends)) if ends else ()
        self.sentences = np.flatnonzero(ending) + 1  # where sentences begin
        self.packed = [] if next_sentence else pack(self.lengths + 1, block_size - 1)  # windows of each row
        of_rows = [int(self.lengths[row].sum()) for row in self.packed]
        self.row_lengths = np.array(of_rows) if self.packed else self.lengths  # tokens of text
        self.order = Order(len(self.row_lengths), seed=seed)
        self.without_target = float(((1 - self.rule.select) ** self.row_lengths).mean())
        """Fraction of rows in which chance selects no token."""

    @property
    def tokens(self) -> int:
        return max(1, round(self.batch_size * float(self.row_lengths.mean()) * self.rule.select))

    def batch(self, step: int) -> tuple[Masked, Ids]:
        """Masked of ids (B, T), mask (B, T), segments (B, T), follows (B,); targets (B, T), IGNORE if not selected"""
        return self._masked(self.order.bucket(step, self.batch_size, self.row_lengths, self.pool), step)

    def once(self, limit: int) -> Iterator[tuple[Masked, Ids]]:
        """The batches of an epoch, of at most `limit` rows; the last has what is left."""
        count = min(limit, self.order.count)
        for step, first in enumerate(range(0, count, self.batch_size)):
            yield self._masked(self.order.draws(first, min(self.batch_size, count - first)), step)

    def _masked(self, rows: Ids, step: int) -> tuple[Masked, Ids]:
        rng = generator("masked", step, seed=self.seed)
        (ids, mask, segments), follows = self._pairs(rows, rng) if self.next_sentence else self._packed(rows)
        text = mask & ~np.isin(ids, self.special)
        read, targets = self.rule(ids, text, self.words, self.special.mask, rng)
        return Masked(read, mask, segments, np.array(follows, np.int32)), targets

    def _packed(self, rows: Ids) -> tuple[Segmented, list[int]]:
        """The windows of each row, one after the other"""
        starts, ends, ids = self.starts, self.starts + self.lengths, self.documents.ids
        texts = [[ids[starts[window] : ends[window]] for window in self.packed[row]] for row in rows]
        return sequences(texts, self.special), [IGNORE] * len(rows)

    def _pairs(self, windows: Ids, rng: np.random.Generator) -> tuple[Segmented, tuple[int, ...]]:
        """Each window as A and B, and 1 where B follows A"""
        firsts, seconds, follows = zip(*(self._pair(int(window), rng) for window in windows), strict=True)
        return segmented(firsts, seconds, self.special), follows

    def _pair(self, window: int, rng: np.random.Generator) -> tuple[Ids, Ids, int]:
        """A, B, and 1 if B follows A"""
        ids, start = self.documents.ids, int(self.starts[window])
        stop = start + int(self.lengths[window])
        middle = self._sentence(start + 1, stop, rng)
        if rng.integers(2):
            return ids[start:middle], ids[middle:stop], 1
        return ids[start:middle], self._elsewhere(window, stop - middle, rng), 0

    def _elsewhere(self, window: int, length: int, rng: np.random.Generator) -> Ids:
        """Text of another document, if possible as long as the true one, so that the length does not give it away.

        With a single document, text of another window.
        """
        document = self.of[window]
        low, high = np.searchsorted(self.of, (document, document + 1))
        if high - low == len(self.of):
            low, high = window, window + 1
        other = int(rng.integers(len(self.of) - (high - low)))
        other += int(high - low) * (other >= low)
        if self.of[other] == document:
            begin, end = int(self.starts[other]), int(self.starts[other] + self.lengths[other])
        else:
            begin, end = (int(n) for n in self.documents.starts[self.of[other] : self.of[other] + 2])
        first = self._sentence(begin + 1, end - length + 1, rng) if end - begin > length else begin
        return self.documents.ids[first : min(first + length, end)]

    def _sentence(self, low: int, high: int, rng: np.random.Generator) -> int:
        """A place from low to high - 1 where a sentence begins; any place if no sentence begins there."""
        begin, end = np.searchsorted(self.sentences, (low, high))
        return int(self.sentences[rng.integers(begin, end)]) if end > begin else int(rng.integers(low, high))
