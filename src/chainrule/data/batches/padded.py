"""Batches of whole documents, padded to the longest of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Required, TypedDict, Unpack

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


class Drawing(TypedDict, total=False):
    """How batches are drawn; `Bucketed` has the defaults."""

    batch_size: Required[int]
    block_size: Required[int]
    seed: int
    replacement: bool
    pool: int


class Bucketed(BatchSource):
    """Items drawn `batch_size` at a time: the base of batches of documents, pairs, labeled and tagged texts.

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
        return max(1, round(self.batch_size * float(self.lengths.mean())))

    def rows(self, items: Items) -> tuple[Any, Ids]:
        """The inputs and the targets of these items."""
        raise NotImplementedError

    def batch(self, step: int) -> tuple[Any, Ids]:
        """The inputs and the targets of random items, as `rows` describes them."""
        return self.rows(self.order.bucket(step, self.batch_size, self.lengths, self.pool))

    def once(self) -> Iterator[tuple[Any, Ids]]:
        """Batches for evaluation: every item once, sorted by length so that little is padded."""
        return map(self.rows, self.by_length())

    def by_length(self) -> Iterator[Items]:
        """The items of each batch of `once`."""
        items = np.argsort(self.lengths, kind="stable")
        for first in range(0, len(items), self.batch_size):
            yield items[first : first + self.batch_size]


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

    def __init__(self, documents: Encoded, **drawing: Unpack[Drawing]) -> None:
        self.documents = documents
        self.items = np.flatnonzero(documents.lengths >= 2)  # the others have no target
        if not len(self.items):
            raise no_targets(documents)
        super().__init__(documents.lengths[self.items] - 1, **drawing)

    @property
    def truncated(self) -> float:
        """Fraction of the documents that are truncated."""
        return float((self.documents.lengths[self.items] - 1 > self.block_size).mean())

    def rows(self, items: Items) -> tuple[Ids, Ids]:
        """inputs (B, T) and targets (B, T); T is the length of the longest document of the batch"""
        return shift(*gather(self.documents, self.items[items], int(self.lengths[items].max()) + 1))


def no_targets(documents: Encoded) -> DataError:
    rule = "at least one must have two: one to read, one to predict"
    return DataError(f"documents: none of {len(documents)} has two tokens ({rule})")


def padded(documents: Encoded, *, batch_size: int, block_size: int) -> Iterator[tuple[Ids, Ids]]:
    """Batches for evaluation: every document once, sorted by length so that little is padded."""
    return DocumentBatches(documents, batch_size=batch_size, block_size=block_size).once()


def gather(documents: Encoded, items: Items, length: int, value: int = PAD) -> tuple[Ids, Mask]:
    """The first `length` tokens of each document (B, length), and where they are (B, length)."""
    place = np.arange(length)
    mask = place < documents.lengths_of(items)[:, None]  # (B, length)
    ids: npt.NDArray[Any] = np.full(mask.shape, value, np.int32)
    ids[mask] = documents.ids[(documents.starts[items][:, None] + place)[mask]]
    return ids, mask
