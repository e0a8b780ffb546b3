"""How the rows of a translation remember what they have read: in the extension's caches, or in arrays beside the ops.

Compiled    the decoder's program runs in C++, one call for a token of every row
ByOps       the decoder's layers are called one after the other: in float64, under `capture`, which looks inside,
            with adapters, and where the extension was not built or is not wanted
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from chainrule.autograd import Tensor, no_grad
from chainrule.autograd.types import Array
from chainrule.generate.compiled import Compiler
from chainrule.generate.slots import kept
from chainrule.models import Seq2Seq
from chainrule.nn import MultiHeadAttention

Ids = npt.NDArray[np.integer[Any]]


class Rows(Protocol):
    """Targets of equal length, each with its source."""

    def read(self, ids: Ids, owners: Ids, start: int) -> Array:
        """ids (B, T) from position `start` on, owners (B,), the source of each row -> logits (B, V) after the last"""

    def keep(self, rows: Ids, moved: bool, length: int) -> None:
        """Row i becomes what row rows[i] is, the first `length` positions of it; `moved` if its source changes."""


class Compiled:
    """A cache for each row; those of one source share its keys and values, so a beam that forks copies little."""

    def __init__(self, compiler: Compiler, memory: Array, mask: Array | None) -> None:
        B, S, C = memory.shape
        # What is hidden need not be there: without positions of its own, attention does not see the gap.
        visible = memory.reshape(-1, C) if mask is None else memory[mask]
        counts = np.full(B, S) if mask is None else mask.sum(axis=1)
        self.room = max(1, B)
        self.program = compiler.open(self.room)
        self.program.read(np.ascontiguousarray(visible), counts)
        self.vocab_size = compiler.registers["logits"][1]
        self.slots = list(range(B))

    def read(self, ids: Ids, owners: Ids, start: int) -> Array:
        B, T = ids.shape
        logits = np.empty((B, self.vocab_size), np.float32)
        tokens = np.ascontiguousarray(ids, np.int32).reshape(-1)
        self.program.run(logits, tokens, np.array(self.slots), np.full(B, T), np.full(B, start), owners)
        return logits

    def keep(self, rows: Ids, moved: bool, length: int) -> None:
        if len(rows) > self.room:
            self.room = len(rows)
            self.program.grow(self.room)
        self.slots, copies = kept(self.slots, rows.tolist(), self.room)
        for source, target in copies:
            self.program.copy(source, target, length)


class ByOps:
    """Keys and values of each layer, as its ops gave them."""

    def __init__(self, model: Seq2Seq, memory: Tensor, mask: Array | None) -> None:
        self.model, self.memory, self.mask = model, memory, mask
        self.caches = [(Growing(), Fixed()) for _ in range(model.config.n_layer)]

    def read(self, ids: Ids, owners: Ids, start: int) -> Array:
        with no_grad():
            hidden = self.model.decode(ids, self.memory, self.mask, caches=self.caches, start=start)
            logits: Array = self.model.logits(hidden[:, -1]).numpy()
        return logits

    def keep(self, rows: Ids, moved: bool, length: int) -> None:
        for past, _ in self.caches:
            past.take(rows)
        if moved:  # beams that only change places keep what they know of the source
            for _, source in self.caches:
                source.take(rows)
            self.memory = Tensor(self.memory.numpy()[rows])
            self.mask = None if self.mask is None else self.mask[rows]


class Fixed:
    """Keys and values of the sources, the same for every token: computed the first time."""

    def __init__(self) -> None:
        self.kept: tuple[Tensor, Tensor] | None = None

    def read(self, layer: MultiHeadAttention, source: Tensor) -> tuple[Tensor, Tensor]:
        if self.kept is None:
            self.kept = layer.keys_values(source)
        return self.kept

    def take(self, rows: Ids) -> None:
        if self.kept is not None:
            k, v = self.kept
            self.kept = Tensor(k.numpy()[rows]), Tensor(v.numpy()[rows])


class Growing:
    """Keys and values of all tokens read so far, in arrays with room for more."""

    def __init__(self) -> None:
        self.length = 0
        self.arrays: list[Array] = []  # keys and values, (B, H, room, D) each

    def read(self, layer: MultiHeadAttention, source: Tensor) -> tuple[Tensor, Tensor]:
        new = [x.numpy() for x in layer.keys_values(source)]  # (B, H, T, D)
        stop = self.length + new[0].shape[2]
        if not self.arrays or stop > self.arrays[0].shape[2]:
            self.arrays = [self._roomy(i, x, 2 * stop) for i, x in enumerate(new)]
        for array, x in zip(self.arrays, new, strict=True):
            array[:, :, self.length : stop] = x
        self.length = stop
        k, v = (Tensor.wrap(array[:, :, :stop]) for array in self.arrays)
        return k, v

    def take(self, rows: Ids) -> None:
        self.arrays = [array[rows] for array in self.arrays]

    def _roomy(self, i: int, x: Array, room: int) -> Array:
        B, H, _, D = x.shape
        larger = np.empty((B, H, room, D), x.dtype)
        if self.arrays:
            larger[:, :, : self.length] = self.arrays[i][:, :, : self.length]
        return larger
