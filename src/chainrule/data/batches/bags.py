"""Bags of features: which tokens and which runs of neighboring tokens a text has, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from chainrule.data.batches.padded import Bucketed, Drawing, pad
from chainrule.data.encoded import Encoded
from chainrule.data.hashing import mix
from chainrule.data.order import Items
from chainrule.errors import DataError
from chainrule.types import Ids


class Bag(NamedTuple):
    """The features of texts, each once in its row, padded with some that occur 0 times."""

    features: Ids  # (B, F)
    counts: Ids  # (B, F)


class NGrams(NamedTuple):
    """The features of a text: its tokens and, hashed to `buckets`, its runs of 2 to `ngrams` neighbors.

    Two runs may share a bucket; with as many buckets as different runs, most of them have one to themselves.
    (Weinberger et al. 2009)

    >>> from chainrule.data import NGrams
    >>> ids, counts = NGrams(vocab_size=10, ngrams=2, buckets=100)([7, 3, 7])
    >>> ids[:2].tolist(), counts.tolist(), bool((10 <= ids[2:]).all() and (ids < 110).all())
    ([3, 7], [1, 2, 1, 1], True)
    """

    vocab_size: int
    ngrams: int
    buckets: int

    def __call__(self, tokens: npt.ArrayLike) -> tuple[Ids, Ids]:
        """tokens (T,) -> features (F,), each once, and how often each occurs (F,)"""
        ids, counts = np.unique(np.concatenate(self.runs(tokens)), return_counts=True)
        return ids.astype(np.int32), counts.astype(np.int32)

    def runs(self, tokens: npt.ArrayLike) -> list[npt.NDArray[np.int64]]:
        """tokens (T,) -> the feature of each token (T,), of each pair of neighbors (T - 1,), ..."""
        found = [np.asarray(tokens, np.int64)]
        runs = mix(found[0])
        for n in range(2, self.ngrams + 1):
            runs = mix(runs[:-1] + found[0][n - 1 :].astype(np.uint64))  # a run and the token after it
            found.append(self.vocab_size + (runs % np.uint64(self.buckets)).astype(np.int64))
        return found

    def bag(self, texts: Sequence[npt.ArrayLike]) -> Bag:
        """The features of B texts of tokens"""
        return _padded([self(tokens) for tokens in texts])


class BagBatches(Bucketed):
    """Labeled texts in random order, as bags.

    >>> from chainrule.data import BagBatches, NGrams
    >>> features = NGrams(vocab_size=10, ngrams=1, buckets=1)
    >>> batches = BagBatches([[7, 8, 7], [9]], [0, 1], features=features, batch_size=2, block_size=8)
    >>> (ids, counts), labels = batches.batch(step=0)
    >>> sorted(zip(ids.tolist(), counts.tolist(), labels.tolist()))
    [([7, 8], [2, 1], 0), ([9, 0], [1, 0], 1)]
    """

    def __init__(
        self,
        texts: Sequence[npt.ArrayLike],
        labels: Sequence[int],
        *,
        features: NGrams,
        **drawing: Unpack[Drawing],
    ) -> None:
        if len(texts) != len(labels):
            raise DataError(f"labeled: {len(texts)} texts, {len(labels)} labels (must be as many)")
        self.texts = Encoded.of(texts)
        self.labels = np.asarray(labels, np.int32)
        self.bags = [features(tokens) for tokens in self.texts]
        super().__init__(np.array([len(ids) for ids, _ in self.bags]), **drawing)

    @property
    def tokens(self) -> int:
        """Number of labels per batch."""
        return self.batch_size

    def rows(self, items: Items) -> tuple[Bag, Ids]:
        """Bag of features (B, F), counts (B, F); labels (B,)"""
        return _padded([self.bags[item] for item in items]), self.labels[items]


def _padded(bags: Sequence[tuple[Ids, Ids]]) -> Bag:
    ids, counts = zip(*bags, strict=True)
    return Bag(pad(ids)[0], pad(counts)[0])
