"""An optimizer whose state is cut up among ranks: each keeps and updates its own shards of the block (ZeRO-1).

    state of a rank    2 P / n numbers instead of 2 P        P parameters, n ranks
    sent per step      gradients (n - 1)/n P, then values (n - 1)/n P: as much as when every rank gets all gradients

Every update is elementwise, so the values are those of one optimizer, bit for bit. (Rajbhandari et al. 2020)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from chainrule import native
from chainrule.distributed import Exchange
from chainrule.optim.adam import AdamW
from chainrule.optim.optimizer import CHUNK
from chainrule.optim.tensors import Block, Piece
from chainrule.types import Array


class Shard:
    """The shards of a block that one rank updates, as an optimizer takes a block."""

    def __init__(self, block: Any, layout: Exchange) -> None:
        self.block: Block = block
        # Values of all ranks; gradients, which are sums over the ranks in this rank's shards alone.
        self.data, self.grad, self.offsets = block.data, block.grad, block.offsets
        self.layout = layout
        self.own = layout.own
        self.size = sum(part.stop - part.start for part in self.own)

    def items(self) -> Any:
        """Names and parameters."""
        return self.block.items()

    def kernels(self) -> Any:
        """The C++ kernels, if the block uses them."""
        return self.block.kernels()

    def zero_grad(self) -> None:
        """Zero all gradients."""
        self.block.zero_grad()

    def moved(self) -> str:
        """The name of a parameter that another block has taken."""
        return self.block.moved()

    def pieces(self) -> Iterator[Piece]:
        """The pieces of the block inside this rank's shards."""
        for _, _, span, decays, settings in self.block.pieces():
            start = 0
            for part in self.own:
                low, high = max(part.start, span.start), min(part.stop, span.stop)
                if low < high:
                    state = slice(start + low - part.start, start + high - part.start)
                    yield self.block.data[low:high], self.block.grad[low:high], state, decays, settings
                start += part.stop - part.start

    def changed(self) -> None:
        """Bring the values of all ranks together, and mark them as changed."""
        self.gather(self.block.data)
        self.block.changed()

    def spread(self, own: Array) -> Array:
        """The shards of all ranks as one array, for each rank."""
        total = native.zeros(self.block.grad.size, own.dtype)
        self._between(self.own, total, own, back=True)
        self.gather(total)
        return total

    def gather(self, array: Array) -> None:
        """Fill an array of the block's layout with the shards of all ranks."""
        for pending in [self.layout.ranks.all_gather(array[bucket]) for bucket in self.layout.cut]:
            pending.wait()

    def take(self, whole: Array, own: Array) -> None:
        """Copy this rank's shards."""
        self._between(self.own, whole, own, back=False)

    def whole(self, own: Array) -> Array:
        """The shards of all ranks as one array, for the first rank; the others get an empty one."""
        found = self.layout.ranks.to_first(own)
        total = native.zeros(self.block.grad.size if found else 0, own.dtype)
        for rank, part in enumerate(found):
            self._between(self.layout.of_rank(rank), total, part, back=True)
        return total

    def _between(self, parts: list[slice], whole: Array, own: Array, *, back: bool) -> None:
        start = 0
        for part in parts:
            stop = start + part.stop - part.start
            if back:
                whole[part] = own[start:stop]
            else:
                own[start:stop] = whole[part]
            start = stop


class ShardedAdamW(AdamW):
    """AdamW of a `Shard`. Its state is saved whole, by the first rank, and loaded by any number of ranks."""

    params: Shard

    def _new_arrays(self) -> dict[str, Array]:
        return {slot: native.zeros(self.params.size, self.params.grad.dtype) for slot in self.slots}

    def rehearse(self, lr: float | None = None) -> Iterator[tuple[int, Array]]:
        """That of all ranks, in the chunks of one optimizer. All must ask.

        Each rank has an array of its own part and one of the whole block while it is asked.
        """
        own = native.zeros(self.params.size, self.params.grad.dtype)
        for start, moved in super().rehearse(lr):
            own[start : start + moved.size] = moved
        whole = self.params.spread(own)
        for _, _, span, *_ in self.params.block.pieces():
            for start in range(span.start, span.stop, CHUNK):
                yield start, whole[start : min(start + CHUNK, span.stop)]

    def views(self) -> dict[str, Array]:
        """The state of all ranks, for the first; nothing for the others. All must ask."""
        whole = {slot: self.params.whole(own) for slot, own in self.arrays.items()}
        if not self.params.layout.ranks.first:
            return {}
        with self._with(whole):
            return super().views()

    def load(self, state: Mapping[str, Array]) -> None:
        """Keep this rank's shards of a whole state."""
        grads = self.params.grad
        whole = {slot: native.zeros(grads.size, grads.dtype) for slot in self.slots}
        with self._with(whole):
            super().load(state)
        for slot, own in self.arrays.items():
            self.params.take(whole[slot], own)

    @contextmanager
    def _with(self, whole: dict[str, Array]) -> Iterator[None]:
        """In here the state arrays are whole."""
        own, self.arrays = self.arrays, whole
        try:
            yield
        finally:
            self.arrays = own
