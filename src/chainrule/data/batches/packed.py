"""Batches of packed documents: several per row, so that little is padded and no document is truncated.

A document of n tokens is n - 1 pairs (token, next token), cut into pieces of at most `block_size`. A row holds whole
pieces, so no target lies in another document. Pieces are placed, the longest first, in the row where the least space
remains (best-fit decreasing; Ding et al. 2024, "Fewer truncations improve language modeling").
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.data.batches.padded import PAD, no_targets
from chainrule.data.batches.source import BatchSource
from chainrule.data.encoded import Encoded
from chainrule.data.order import Order, check_sizes
from chainrule.types import IGNORE, Ids


class Packed(NamedTuple):
    """Rows of several texts, which do not see each other: 1 for the first of a row, 2 for the second, 0 for padding."""

    ids: Ids  # (B, T)
    segments: Ids  # (B, T)

    @classmethod
    def alone(cls, ids: Ids) -> Packed:
        """Rows of one text each."""
        return cls(ids, np.ones_like(ids))


class PackedBatches(BatchSource):
    """Rows of `block_size` pairs in random order; every pair once per epoch.

    >>> from chainrule.data import Encoded, PackedBatches
    >>> batches = PackedBatches(Encoded.of([[1, 2, 3], [4, 5], [6, 7]]), batch_size=1, block_size=4)
    >>> inputs, targets = batches.batch(step=0)
    >>> inputs.tolist(), targets.tolist(), batches.segments(step=0).tolist()
    ([[1, 2, 4, 6]], [[2, 3, 5, 7]], [[1, 1, 2, 3]])
    """

    def __init__(self, documents: Encoded, *, batch_size: int, block_size: int, seed: int = 0) -> None:
        check_sizes(batch_size, block_size)
        self.ids = self.learned = documents.ids
        self.batch_size = batch_size
        self.block_size = block_size
        pairs = np.maximum(documents.lengths - 1, 0)
        self.starts, self.lengths = stretches(documents.starts[:-1], pairs, block_size)  # of the pieces
        self.rows = pack(self.lengths, block_size)
        if not self.rows:
            raise no_targets(documents)
        self.order = Order(len(self.rows), seed=seed)

    @property
    def tokens(self) -> int:
        return max(1, round(self.batch_size * int(self.lengths.sum()) / len(self.rows)))

    def batch(self, step: int) -> tuple[Any, Ids]:
        """inputs (B, T) and targets (B, T)"""
        rows = [self.row(int(row)) for row in self.order.batch(step, self.batch_size)]
        return np.stack([inputs for inputs, _ in rows]), np.stack([targets for _, targets in rows])

    def row(self, number: int) -> tuple[Ids, Ids]:
        """inputs (T,) and targets (T,) of a row"""
        inputs, place = np.full(self.block_size, PAD, np.int32), 0
        targets = np.full_like(inputs, IGNORE)
        for piece in self.rows[number]:
            start, length = int(self.starts[piece]), int(self.lengths[piece])
            inputs[place : place + length] = self.ids[start : start + length]
            targets[place : place + length] = self.learned[start + 1 : start + length + 1]
            place += length
        return inputs, targets

    def segments(self, step: int) -> Ids:
        """(B, T): 1 for the first document of a row, 2 for the second, ...; 0 for padding"""
        segments = np.zeros((self.batch_size, self.block_size), np.int32)
        for b, row in enumerate(self.order.batch(step, self.batch_size)):
            lengths = self.lengths[self.rows[row]]
            segments[b, : lengths.sum()] = np.repeat(np.arange(1, len(lengths) + 1), lengths)
        return segments


def stretches(starts: Ids, lengths: Ids, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Starts and lengths of the stretches, when each item (start, length) is cut after every `size`."""
    count = -(-lengths // size)  # stretches per item
    of = np.repeat(np.arange(len(lengths)), count)
    number = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)  # within its item
    begin = starts[of] + number * size
    return begin.astype(np.int64), np.minimum(lengths[of] - number * size, size).astype(np.int64)


def pack(lengths: npt.NDArray[np.int64], size: int) -> list[list[int]]:
    """Rows of pieces, each row at most `size` long in total; pieces of a row stay in their order."""
    rows: list[list[int]] = []
    with_space: dict[int, list[int]] = {}  # space left -> rows
    spaces: list[int] = []  # the keys, sorted
    for piece in np.argsort(-lengths, kind="stable"):
        length = int(lengths[piece])
        at = bisect_left(spaces, length)
        if at < len(spaces):
            space = spaces[at]
            row = with_space[space].pop()
            if not with_space[space]:
                del with_space[space], spaces[at]
        else:
            space, row = size, len(rows)
            rows.append([])
        rows[row].append(int(piece))
        if left := space - length:
            if left not in with_space:
                insort(spaces, left)
            with_space.setdefault(left, []).append(row)
    return [sorted(row) for row in rows]
