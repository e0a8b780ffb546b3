"""Consecutive windows of parallel streams: batches for a model that carries its state from step to step."""

from __future__ import annotations

import numpy as np

from chainrule.data.batches.windows import Batches, cut
from chainrule.data.order import check_sizes
from chainrule.errors import DataError, Setting
from chainrule.random import generator
from chainrule.types import Ids


class Streams(Batches):
    """The text cut into `batch_size` streams; each step sees the next `block_size` tokens of every stream.

    Each row of a batch continues the same row of the batch before, except at steps where `begins` is true: there a new
    pass over the text starts, with its cuts moved by a random offset. Step n is a pure function of (seed, n).

    >>> import numpy as np
    >>> from chainrule.data import Streams
    >>> streams = Streams(np.arange(100), batch_size=2, block_size=5)
    >>> (one, _), (two, _) = streams.batch(0), streams.batch(1)
    >>> bool((two[:, 0] == one[:, -1] + 1).all()), [step for step in range(20) if streams.begins(step)]
    (True, [0, 9, 18])
    """

    def __init__(self, ids: Ids, *, batch_size: int, block_size: int, seed: int = 0) -> None:
        check_sizes(batch_size, block_size)
        if len(ids) <= batch_size * block_size:
            raise DataError(
                f"training text: {len(ids)} tokens, ",
                *(Setting("batch_size"), f" {batch_size}, ", Setting("block_size"), f" {block_size} "),
                "(must have more tokens than their product: give more text, or make one of them smaller)",
            )
        super().__init__(ids, batch_size=batch_size, block_size=block_size, seed=seed)
        # One window is left over if the text is long, so that two passes can be cut at different places.
        self.steps = max(1, (len(ids) - block_size) // self.tokens)
        """Steps of one pass."""

    def begins(self, step: int) -> bool:
        """Whether a new pass begins at this step; if not, each row continues that of the step before."""
        return step % self.steps == 0

    def batch(self, step: int) -> tuple[Ids, Ids]:
        """inputs (B, T) and targets (B, T), the inputs shifted by one"""
        number, window = divmod(step, self.steps)
        spare = len(self.ids) - 1 - self.steps * self.tokens
        first = int(generator("order", number, seed=self.seed).integers(spare + 1))
        length = self.steps * self.block_size  # length of a stream
        starts = first + np.arange(self.batch_size) * length + window * self.block_size
        return cut(self.ids, starts[:, None], self.block_size)
