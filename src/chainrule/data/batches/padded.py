"""Batches of whole documents, padded to the longest of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.data.batches.source import BatchSource
from chainrule.data.encoded import Encoded
from chainrule.data.order import Items, Order, check_sizes
from chainrule.errors import DataError
from chainrule.types import IGNORE, Ids

PAD = 0  # fills inputs; any token would do, since the targets there are IGNORE

Mask = npt.NDArray[np.bool_]


def pad(rows: Sequence[npt.ArrayLike], length: int | None = None, value: int = PAD) -> tuple[Ids, Mask]:
    """B rows -> ids (B, T), mask (B, T), True where a token is; T is `length`, or the longest row.

    Longer rows are truncated.

    >>> from chainrule.data import pad
    >>> ids, mask = pad([[1, 2, 3], [4]])
    >>> ids.tolist(), mask.tolist()
    ([[1, 2, 3], [4, 0, 0]], [[True, True, True], [True, False, False]])
    """
    documents = Encoded.of(rows)
    longest = int(documents.lengths.max(initial=0))
    return gather(documents, np.arange(len(documents)), longest if length is None else length, value)


def shift(ids: Ids, mask: Mask) -> tuple[Ids, Ids]:
    """ids (B, T + 1), mask (B, T + 1) -> inputs (B, T), targets (B, T): each token predicts the next of its row

    A position has an input exactly where it has a target, so `targets != IGNORE` is the padding mask.
    """
    targets = np.where(mask[:, 1:], ids[:, 1:], IGNORE)
    return np.where(mask[:, 1:], ids[:, :-1], PAD), targets


class Bucketed(BatchSource):
    """Items drawn `batch_size` at a time: the base of batches of documents and of pairs.

    `lengths` are the numbers of targets of the items; with `pool` > 1 the items of a batch are similar in length.
    """

    def __init__(
        self,
        lengths: Ids,
        *,
        batch_size: int,
        block_size: int,
        seed: int = 0,
        replacement: bool = False,
        pool: int = 1,
    ) -> None:
        check_sizes(batch_size, block_size, pool)
        self.batch_size = batch_size
        self.block_size = block_size
        self.pool = pool
        self.lengths = lengths.clip(max=block_size)
        self.order = Order(len(lengths), seed=seed, replacement=replacement)

    @property
    def tokens(self) -> int:
        """Mean number of targets per batch."""
        return max(1, round(self.batch_size * float(self.lengths.mean())))

    def draw(self, step: int) -> Items:
        """The items of a batch (B,)."""
        return self.order.bucket(step, self.batch_size, self.lengths, self.pool)

    def in_turn(self) -> Iterator[Items]:
        """The items of batches for evaluation: every item once, sorted by length so that little is padded."""
        items = np.argsort(self.lengths, kind="stable")
        return (items[first : first + self.batch_size] for first in range(0, len(items), self.batch_size))


class DocumentBatches(Bucketed):
    """Random documents, `batch_size` at a time; documents longer than `block_size` tokens are truncated.

    Step n is a pure function of (seed, n). An epoch visits every document of two or more tokens once; with
    `replacement` draws are independent. With `pool` > 1 the documents of a batch are similar in length.

    >>> from chainrule.data import DocumentBatches, Encoded
    >>> batches = DocumentBatches(Encoded.of([[1, 2, 3, 4], [5, 6]]), batch_size=2, block_size=8)
    >>> inputs, targets = batches.batch(step=0)
    >>> sorted(targets.tolist())
    [[2, 3, 4], [6, -1, -1]]
    """

    def __init__(
        self,
        documents: Encoded,
        *,
        batch_size: int,
        block_size: int,
        seed: int = 0,
        replacement: bool = False,
        pool: int = 1,
    ) -> None:
        self.documents = documents
        self.items = _with_targets(documents)
        super().__init__(
            documents.lengths[self.items] - 1,
            batch_size=batch_size,
            block_size=block_size,
            seed=seed,
            replacement=replacement,
            pool=pool,
        )

    @property
    def truncated(self) -> float:
        """Fraction of the documents that are truncated."""
        return float((self.documents.lengths[self.items] - 1 > self.block_size).mean())

    def batch(self, step: int) -> tuple[Ids, Ids]:
        """inputs (B, T) and targets (B, T); T is the length of the longest document of the batch"""
        return _batch(self.documents, self.items[self.draw(step)], self.block_size)


def padded(documents: Encoded, *, batch_size: int, block_size: int) -> Iterator[tuple[Ids, Ids]]:
    """Batches for evaluation: every document once, sorted by length so that little is padded."""
    check_sizes(batch_size, block_size)
    items = _with_targets(documents)
    items = items[np.argsort(documents.lengths[items], kind="stable")]
    for first in range(0, len(items), batch_size):
        yield _batch(documents, items[first : first + batch_size], block_size)


def _with_targets(documents: Encoded) -> Items:
    """The documents of two or more tokens: the others have no target."""
    items = np.flatnonzero(documents.lengths >= 2)
    if not len(items):
        raise DataError(f"documents: none of {len(documents)} has two tokens (must have one to predict)")
    return items


def _batch(documents: Encoded, items: Items, block_size: int) -> tuple[Ids, Ids]:
    longest = int(documents.lengths_of(items).max())
    return shift(*gather(documents, items, min(longest, block_size + 1)))


def gather(documents: Encoded, items: Items, length: int, value: int = PAD) -> tuple[Ids, Mask]:
    """The first `length` tokens of each document (B, length), and where they are (B, length)."""
    place = np.arange(length)
    mask = place < documents.lengths_of(items)[:, None]  # (B, length)
    ids: npt.NDArray[Any] = np.full(mask.shape, value, np.int32)
    ids[mask] = documents.ids[(documents.starts[items][:, None] + place)[mask]]
    return ids, mask
