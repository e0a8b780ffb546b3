"""Batches of sources with their targets, for encoder-decoder models."""

from __future__ import annotations

from typing import NamedTuple, Unpack

from chainrule.data.batches.padded import Bucketed, Drawing, Mask, gather, shift
from chainrule.data.encoded import Encoded, Rows
from chainrule.data.order import Items
from chainrule.errors import DataError
from chainrule.types import Ids


class Pair(NamedTuple):
    """The inputs of an encoder and a decoder."""

    source: Ids  # (B, S)
    source_mask: Mask  # (B, S), True where a token is
    target: Ids  # (B, T): start, then the target


class PairBatches(Bucketed):
    """Pairs in random order, like `DocumentBatches`. The decoder reads [start] y and predicts y [end].

    >>> from chainrule.data import PairBatches
    >>> batches = PairBatches([[5, 6]], [[7, 8]], start=1, end=2, batch_size=1, block_size=8)
    >>> (source, mask, inputs), targets = batches.batch(step=0)
    >>> source.tolist(), inputs.tolist(), targets.tolist()
    ([[5, 6]], [[1, 7, 8]], [[7, 8, 2]])
    """

    def __init__(
        self, sources: Rows, targets: Rows, *, start: int, end: int, **drawing: Unpack[Drawing]
    ) -> None:
        self.sources = Encoded.of(sources)
        self.targets = Encoded.of(targets, start=start, end=end)
        if (n := len(self.sources)) != len(self.targets):
            raise DataError(f"pairs: {n} sources, {len(self.targets)} targets (must be equal)")
        super().__init__(self.targets.lengths - 1, **drawing)

    @property
    def truncated(self) -> float:
        """Fraction of the pairs with a truncated side."""
        cut = (self.sources.lengths > self.block_size) | (self.targets.lengths - 1 > self.block_size)
        return float(cut.mean())

    def rows(self, items: Items) -> tuple[Pair, Ids]:
        """Pair of source (B, S), mask (B, S), decoder inputs (B, T); targets (B, T). S and T are at most block_size."""
        longest = min(int(self.sources.lengths_of(items).max()), self.block_size)
        source, mask = gather(self.sources, items, longest)
        inputs, targets = shift(*gather(self.targets, items, int(self.lengths[items].max()) + 1))
        return Pair(source, mask, inputs), targets
