"""Random windows of one long text for training; windows that cover it for validation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chainrule.data.batches.source import BatchSource
from chainrule.data.order import check_sizes, spread
from chainrule.errors import DataError, Setting
from chainrule.random import generator
from chainrule.types import Ids


class Batches(BatchSource):
    """Random windows of a text. Step n is a pure function of (seed, n): there is no state to save.

    >>> import numpy as np
    >>> from chainrule.data import Batches
    >>> inputs, targets = Batches(np.arange(100), batch_size=2, block_size=4, seed=1).batch(step=7)
    >>> bool((targets == inputs + 1).all())
    True
    """

    def __init__(self, ids: Ids, *, batch_size: int, block_size: int, seed: int = 0) -> None:
        check_sizes(batch_size, block_size)
        check_length("training text", ids, block_size)
        self.ids = ids
        self.batch_size = batch_size
        self.block_size = block_size
        self.seed = seed

    @property
    def tokens(self) -> int:
        """Number of targets per batch."""
        return self.batch_size * self.block_size

    def batch(self, step: int) -> tuple[Ids, Ids]:
        """inputs (B, T) and targets (B, T), the inputs shifted by one"""
        rng = generator("order", step, seed=self.seed)
        starts = rng.integers(len(self.ids) - self.block_size, size=self.batch_size)
        return cut(self.ids, starts[:, None], self.block_size)


def windows(ids: Ids, *, batch_size: int, block_size: int, limit: int) -> Iterator[tuple[Ids, Ids]]:
    """Batches for evaluation: at most `limit` windows that do not overlap, spread evenly over the text."""
    check_sizes(batch_size, block_size)
    check_length("validation text", ids, block_size)
    count = (len(ids) - 1) // block_size
    chosen = spread(count, limit)
    for first in range(0, len(chosen), batch_size):
        starts = chosen[first : first + batch_size, None] * block_size
        yield cut(ids, starts, block_size)


def cut(ids: Ids, starts: Ids, block_size: int) -> tuple[Ids, Ids]:
    """starts (B, 1) -> inputs (B, T), targets (B, T)"""
    rows = ids[starts + np.arange(block_size + 1)]  # (B, T + 1)
    if rows.dtype.kind == "u":  # as in shards; a target may be IGNORE, which is negative
        rows = rows.astype(np.int32)
    return rows[:, :-1], rows[:, 1:]


def check_length(what: str, ids: Ids, block_size: int) -> None:
    """Refuse a text of at most `block_size` tokens: a window needs one more for its last target."""
    if len(ids) <= block_size:
        raise DataError(
            f"{what}: {len(ids):,} token{'s' * (len(ids) != 1)}, ",
            *(Setting("block_size"), f" {block_size} (must have more tokens than ", Setting("block_size")),
            *(": bring more text, or a model with a smaller ", Setting("block_size"), ")"),
        )
