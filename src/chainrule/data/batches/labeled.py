"""Batches of texts with labels, for a classifier; and of pairs of texts that mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from chainrule.data.batches.padded import Bucketed, Drawing, Mask
from chainrule.data.batches.segmented import Segmented, segmented, text_limit, trim
from chainrule.data.batches.source import BatchSource
from chainrule.data.order import Items
from chainrule.errors import DataError
from chainrule.text.special_tokens import SpecialIds
from chainrule.types import Ids

Texts = Sequence[npt.ArrayLike]


class LabeledBatches(Bucketed):
    """Labeled texts in random order, like `DocumentBatches`; long texts are truncated.

    >>> from chainrule.data import LabeledBatches, SpecialIds
    >>> sizes = {"batch_size": 2, "block_size": 8}
    >>> batches = LabeledBatches([[7, 8], [9]], [0, 1], special=SpecialIds(1, 2, 3), **sizes)
    >>> (ids, mask, segments), labels = batches.batch(step=0)
    >>> sorted(zip(ids.tolist(), labels.tolist()))
    [([1, 7, 8, 2], 0), ([1, 9, 2, 0], 1)]
    """

    def __init__(
        self,
        texts: Texts,
        labels: Sequence[int],
        others: Texts | None = None,
        *,
        special: SpecialIds,
        **drawing: Unpack[Drawing],
    ) -> None:
        limit = text_limit(drawing["block_size"], 1 if others is None else 2)
        if not len(texts) == len(labels) == len(texts if others is None else others):
            seconds = "" if others is None else f", {len(others)} second texts"
            raise DataError(f"labeled: {len(texts)} texts, {len(labels)} labels{seconds} (must be as many)")
        pairs = zip(texts, repeat(None) if others is None else others, strict=others is not None)
        whole = [(np.asarray(a, np.int32), None if b is None else np.asarray(b, np.int32)) for a, b in pairs]
        self.texts = [trim(a, b, limit) for a, b in whole]
        self.labels = np.asarray(labels, np.int32)
        self.special = special
        lengths = ([len(a) + (0 if b is None else len(b)) for a, b in rows] for rows in (self.texts, whole))
        after, before = map(np.array, lengths)
        self.truncated = float((after < before).mean())
        """Fraction of the texts that are truncated."""
        super().__init__(after, **drawing)

    @property
    def ids(self) -> Ids:
        """All tokens of the texts, one after another (n,)"""
        return np.concatenate([side for row in self.texts for side in row if side is not None])

    @property
    def tokens(self) -> int:
        """Number of labels per batch."""
        return self.batch_size

    def rows(self, items: Items) -> tuple[Segmented, Ids]:
        """Segmented of ids (B, T), mask (B, T), segments (B, T); labels (B,)"""
        firsts, seconds = zip(*(self.texts[item] for item in items), strict=True)
        return segmented(firsts, seconds, self.special), self.labels[items]


class Twins(NamedTuple):
    """Texts and their partners, for a model that turns texts into vectors."""

    ids: Ids  # (B, T)
    mask: Mask  # (B, T)
    partner_ids: Ids  # (B, S)
    partner_mask: Mask  # (B, S)


class TwinBatches(BatchSource):
    """Pairs of texts that mean the same, each text a row; `targets` (B,) are all 0, since every pair counts.

    >>> from chainrule.data import SpecialIds, TwinBatches
    >>> batches = TwinBatches([[7, 8]], [[9]], special=SpecialIds(1, 2, 3), batch_size=1, block_size=8)
    >>> twins, targets = batches.batch(step=0)
    >>> twins.ids.tolist(), twins.partner_ids.tolist()
    ([[1, 7, 8, 2]], [[1, 9, 2]])
    """

    def __init__(
        self, texts: Texts, partners: Texts, *, special: SpecialIds, **drawing: Unpack[Drawing]
    ) -> None:
        self.block_size = drawing["block_size"]
        zeros = [0] * len(texts)
        self.sides = [LabeledBatches(side, zeros, special=special, **drawing) for side in (texts, partners)]

    @property
    def tokens(self) -> int:
        """Number of pairs per batch."""
        return self.sides[0].batch_size

    def batch(self, step: int) -> tuple[Twins, Ids]:
        """Twins of ids (B, T), mask (B, T), partner_ids (B, S), partner_mask (B, S); targets (B,)"""
        (texts, targets), (partners, _) = (side.batch(step) for side in self.sides)
        return Twins(texts.ids, texts.mask, partners.ids, partners.mask), targets
