"""The sum of a flat array over all ranks, bucket by bucket: each begins its way while later ones are still computed.

All ranks must begin with the same bucket, and continue with the same. So the first pass begins none before its end, and
notes in which order the first rank completed them; from then on that is the order of all. A bucket that is complete
early waits for its turn. Elements are summed one by one, so neither buckets nor their order change a bit of the result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from chainrule.distributed.communicator import Communicator, Pending
from chainrule.types import Array

BUCKET = 1 << 20  # elements, at least: a message must be worth its latency
MESSAGE = 1 << 14  # elements that one rank sends another, at least


def buckets(ends: Sequence[int], ranks: int) -> list[slice]:
    """Ranges of an array that end where one of its parts does; `ends` are those of all parts, in order.

    >>> from chainrule.distributed.exchange import buckets
    >>> buckets([600_000, 1_200_000, 1_300_000], ranks=2)
    [slice(0, 1200000, None), slice(1200000, 1300000, None)]
    """
    least = max(BUCKET, ranks * MESSAGE)
    found: list[slice] = []
    start = 0
    for end in ends:
        if end - start >= least or (end == ends[-1] and end > start):
            found.append(slice(start, end))
            start = end
    return found


class Exchange:
    """Sums of an array over all ranks, pass after pass; without `gathers` each rank gets its own shards alone."""

    def __init__(
        self, ranks: Communicator, array: Array, cut: Sequence[slice], *, gathers: bool = True
    ) -> None:
        self.ranks, self.array, self.cut, self.gathers = ranks, array, list(cut), gathers
        self.order: list[int] | None = None  # of the buckets, on all ranks
        self.begin()

    @property
    def own(self) -> list[slice]:
        """The shard of each bucket that this rank adds up."""
        return self.of_rank(self.ranks.rank)

    def of_rank(self, rank: int) -> list[slice]:
        """The shard of each bucket that a rank adds up."""
        found = [(bucket, self.ranks.shards(bucket.stop - bucket.start)[rank]) for bucket in self.cut]
        return [slice(bucket.start + part.start, bucket.start + part.stop) for bucket, part in found]

    def begin(self) -> None:
        """A new pass: no bucket is complete."""
        self.complete: list[int] = []
        self.sent = 0
        self.summing: deque[tuple[int, Pending]] = deque()
        self.gathering: list[Pending] = []

    def ready(self, bucket: int) -> None:
        """A bucket is complete: send it, or those whose turn it is, and let what is under way progress."""
        self.complete.append(bucket)
        self._send()

    def advance(self) -> None:
        """Let what is under way move on."""
        while self.summing and self.summing[0][1].done():
            self._gather(self.summing.popleft()[0])
        self.gathering = [pending for pending in self.gathering if not pending.done()]

    def finish(self) -> None:
        """Every bucket is complete: send what was not sent, and wait for all."""
        everything = list(dict.fromkeys([*self.complete, *range(len(self.cut))]))
        if self.order is None:
            self.order = self.ranks.from_first(everything)
        self.complete = everything
        self._send()
        while self.summing:
            bucket, pending = self.summing.popleft()
            pending.wait()
            self._gather(bucket)
        for pending in self.gathering:
            pending.wait()
        self.begin()

    def _send(self) -> None:
        while self.order is not None and self.sent < len(self.order):
            bucket = self.order[self.sent]
            if bucket not in self.complete:
                break
            self.summing.append((bucket, self.ranks.reduce_scatter(self.array[self.cut[bucket]])))
            self.sent += 1
        self.advance()

    def _gather(self, bucket: int) -> None:
        if self.gathers:
            self.gathering.append(self.ranks.all_gather(self.array[self.cut[bucket]]))
