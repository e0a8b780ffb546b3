"""Consecutive windows of parallel streams: batches for a model that carries its state from step to step."""

from __future__ import annotations

import numpy as np

from chainrule.data.batches.source import BatchSource
from chainrule.data.batches.windows import cut
from chainrule.errors import ConfigError, DataError, Setting
from chainrule.random import generator
from chainrule.types import Ids


class Streams(BatchSource):
    """The text cut into `batch_size` streams; each step sees the next `block_size` tokens of every stream.

    A row of a batch goes on where the same row of the batch before ended, but for the steps that `begins` names:
    there a new pass over the text starts, its cuts moved by a random offset. What step n sees is a pure function of
    (seed, n).

    >>> import numpy as np
    >>> from chainrule.data import Streams
    >>> streams = Streams(np.arange(100), batch_size=2, block_size=5)
    >>> (one, _), (two, _) = streams.batch(0), streams.batch(1)
    >>> bool((two[:, 0] == one[:, -1] + 1).all()), [step for step in range(20) if streams.begins(step)]
    (True, [0, 9, 18])
    """

    def __init__(self, ids: Ids, *, batch_size: int, block_size: int, seed: int = 0) -> None:
        for name, value in (("batch_size", batch_size), ("block_size", block_size)):
            if value < 1:
                raise ConfigError.of("batches", {name: value}, "must be at least 1")
        if len(ids) <= batch_size * block_size:
            raise DataError(
                f"training text: {len(ids)} tokens, ",
                *(Setting("batch_size"), f" {batch_size}, ", Setting("block_size"), f" {block_size} "),
                "(must have more tokens than their product: bring more text or make one of them smaller)",
            )
        self.ids = ids
        self.batch_size = batch_size
        self.block_size = block_size
        self.seed = seed
        # Of a long text a window is left over, so that no two passes need be cut at the same places.
        self.steps = max(1, (len(ids) - block_size) // self.tokens)
        """Steps of one pass."""

    @property
    def tokens(self) -> int:
        """How many targets one batch holds."""
        return self.batch_size * self.block_size

    def begins(self, step: int) -> bool:
        """Whether the streams of this step are new, rather than those of the step before going on."""
        return step % self.steps == 0

    def batch(self, step: int) -> tuple[Ids, Ids]:
        """inputs (B, T) and targets (B, T), the inputs shifted by one"""
        number, window = divmod(step, self.steps)
        spare = len(self.ids) - 1 - self.steps * self.tokens
        first = int(generator("order", number, seed=self.seed).integers(spare + 1))
        length = self.steps * self.block_size  # of a stream
        starts = first + np.arange(self.batch_size) * length + window * self.block_size
        return cut(self.ids, starts[:, None], self.block_size)
