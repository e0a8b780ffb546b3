"""The order of items: a pure function of (seed, number of the draw), without state and without a list.

Without replacement, each epoch is a permutation of all items. A keyed permutation computes it place by place: a Feistel
network whose round function is a hash (Black and Rogaway 2002), with keys made from seed and epoch. So step 812 needs
neither the steps before it nor memory for a permutation of a billion documents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.data.hashing import Words, mix
from chainrule.errors import ConfigError, DataError
from chainrule.random import generator

Items = npt.NDArray[np.int64]

ONE = np.uint64(1)
ROUNDS = 6
FEW = 256  # up to here the permutation is listed: that is cheap, and a small network has few permutations


def spread(count: int, limit: int) -> Items:
    """At most `limit` of `count` items, spread evenly over them, in order.

    >>> from chainrule.data import spread
    >>> spread(9, 3).tolist(), spread(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.linspace(0, count - 1, min(limit, count)).round().astype(np.int64)


class Order:
    """Draws of `count` items: every item once per epoch, or with `replacement` independent draws.

    >>> from chainrule.data import Order
    >>> order = Order(5, seed=1)
    >>> sorted(order.draws(10, 5).tolist())             # draws 10 to 14: the third epoch
    [0, 1, 2, 3, 4]
    """

    def __init__(self, count: int, *, seed: int = 0, replacement: bool = False) -> None:
        if count < 1:
            raise DataError(f"order: {count} items (must be at least 1)")
        self.count = count
        self.seed = seed
        self.replacement = replacement
        self.columns = np.uint64(math.isqrt(count - 1) + 1)
        self.rows = np.uint64(-(-count // int(self.columns)))
        self.keys = generator("order keys", seed=seed).integers(2**64, size=ROUNDS, dtype=np.uint64)

    def draws(self, first: int, number: int) -> Items:
        """The items (number,) of the draws `first`, `first + 1`, ..."""
        draws = np.arange(first, first + number, dtype=np.uint64)
        if self.replacement:
            items = mix(draws ^ self.keys[0]) % np.uint64(self.count)
        else:
            permuted = self._listed if self.count <= FEW else self._computed
            items = permuted(draws % np.uint64(self.count), draws // np.uint64(self.count))
        return items.astype(np.int64)

    def batch(self, step: int, size: int) -> Items:
        """The items of a batch (size,)."""
        return self.draws(step * size, size)

    def bucket(self, step: int, size: int, lengths: npt.NDArray[Any], pool: int) -> Items:
        """A batch of items similar in length, so that little is padded.

        The draws of `pool` batches are sorted by length and cut into batches, which come in random order.
        """
        if pool == 1:
            return self.batch(step, size)
        drawn = self.draws(step // pool * pool * size, pool * size)
        by_length = drawn[np.argsort(lengths[drawn], kind="stable")].reshape(pool, size)
        (turn,) = Order(pool, seed=self.seed).draws(step, 1)
        return by_length[turn]

    def _listed(self, place: Words, epoch: Words) -> Words:
        """place (n,) of an epoch (n,) -> item (n,)"""
        items = np.empty_like(place)
        for number in np.unique(epoch):
            here = epoch == number
            items[here] = generator("order", int(number), seed=self.seed).permutation(self.count)[place[here]]
        return items

    def _computed(self, place: Words, epoch: Words) -> Words:
        """place (n,) of an epoch (n,) -> item (n,)

        The network permutes the numbers below rows * columns; a result beyond the items is permuted once more.
        """
        keys = mix(self.keys[:, None] + epoch)  # (rounds, n)
        item = self._network(place, keys)
        while (outside := item >= self.count).any():
            item[outside] = self._network(item[outside], keys[:, outside])
        return item

    def _network(self, x: Words, keys: Words) -> Words:
        """x as (row, column) of a table; each in turn is shifted by a hash of the other, which is invertible."""
        row, column = np.divmod(x, self.columns)
        for i in range(0, ROUNDS, 2):
            row = (row + (mix(column ^ keys[i]) >> ONE)) % self.rows  # 63 bits: the sum must not wrap
            column = (column + (mix(row ^ keys[i + 1]) >> ONE)) % self.columns
        return row * self.columns + column


def check_sizes(batch_size: int, block_size: int, pool: int = 1) -> None:
    """All must be positive."""
    for name, size in (("batch_size", batch_size), ("block_size", block_size), ("pool", pool)):
        if size < 1:
            raise ConfigError.of("batches", {name: size}, "must be at least 1")
