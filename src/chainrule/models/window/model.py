"""Models that see a fixed number of tokens: every position is an example of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from chainrule.models.language_model import LanguageModel
from chainrule.models.microbatch import Batch, lengthened, spare
from chainrule.types import IGNORE


class WindowModel(LanguageModel):
    """Scores of the next token from the newest `config.block_size`, in rows of any length.

    What lies before the first token has the id `config.vocab_size`, "nothing yet".
    """

    any_length = True
    prepared_inputs: ClassVar[type]
    """What `windows` gives."""

    def predict(self, contexts: Array) -> Tensor:
        """contexts (N, n) -> logits (N, V)"""
        return self.scores(self.windows(contexts, len(contexts)))

    def windows(self, contexts: Array, count: int) -> tuple[Any, ...]:
        """contexts (N, n), of which the first `count` are of the batch -> what `scores` reads, a named tuple"""
        raise NotImplementedError

    def looked_up(self, seen: Array) -> Array:
        """The rows of its tables (n, C) for the tokens that it sees (n,)"""
        raise NotImplementedError

    def scores(self, windows: Any) -> Tensor:
        """What `windows` gives -> logits (N, V)"""
        raise NotImplementedError

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> logits (B, T, V)"""
        contexts = self.contexts(ids)
        B, T, n = contexts.shape
        return self.predict(contexts.reshape(B * T, n)).reshape(B, T, -1)

    def prepared(self, batch: Batch) -> Batch:
        """The windows of the targets that count, and those targets (N,).

        The rest would cost time and blur the statistics of a batch norm. A few empty windows may follow, so that
        batches have few shapes.
        """
        if isinstance(batch.inputs, self.prepared_inputs):
            return batch
        counts = np.asarray(batch.targets) != IGNORE
        targets = batch.targets[counts]
        more = spare(len(targets), counts.size)
        contexts = lengthened(self.contexts(batch.inputs)[counts], more)
        return Batch(self.windows(contexts, len(targets)), lengthened(targets, more, IGNORE))

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """inputs (B, T), targets (B, T) -> mean negative log-likelihood of the targets that count, in nats"""
        windows, targets, _ = self.prepared(Batch(inputs, targets))
        return ops.cross_entropy(self.scores(windows), targets=targets, ignore_index=IGNORE)

    def contexts(self, ids: Array) -> Array:
        """ids (B, T) -> the tokens seen at each position, oldest first (B, T, n)"""
        if np.ndim(ids) != 2 or np.shape(ids)[1] < 1:
            raise ShapeError(f"{type(self).__name__}: ids {np.shape(ids)} (must be (B, T) with T at least 1)")
        return contexts(ids, self.config.block_size, self.config.vocab_size)

    @property
    def training_window(self) -> int:
        """Rows of many windows, so that few positions have nothing before them."""
        return max(64, 8 * int(self.config.block_size))


def contexts(ids: Array, n: int, nothing: int) -> Array:
    """ids (B, T) -> the newest n tokens at each position, oldest first (B, T, n); `nothing` before the first"""
    ids = np.asarray(ids)
    if n == 0:
        return np.empty((*ids.shape, 0), np.int64)
    if ids.dtype.kind in "iu":
        ids = ids.astype(np.int64)  # large enough for the id of "nothing yet"
    padded = np.pad(ids, ((0, 0), (n - 1, 0)), constant_values=nothing)
    return np.lib.stride_tricks.sliding_window_view(padded, n, axis=1)
