"""What all encoder-decoders share: a source is encoded once, a target is scored token by token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import Input
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from chainrule.models.model import Model
from chainrule.types import IGNORE

Through: TypeAlias = Callable[..., Tensor]  # `Model.through`: calls a block, and may do so again in backward
STD = 0.02  # of the matrix that makes logits: small, so that the first loss is near ln V
STARTS = ("bos", "pad", "eos")


class EncoderDecoder(Model):
    """A model that reads one sequence and writes another."""

    reads = ("tokens", "source")

    def encode(self, source: Array, source_mask: Array | None = None) -> Tensor:
        """source (B, S), source_mask (B, S), True where a token is -> memory (B, S, C)"""
        raise NotImplementedError

    def decode(self, target: Array, memory: Tensor, source_mask: Array | None = None) -> Tensor:
        """target (B, T), memory (B, S, C), source_mask (B, S) -> what the head reads (B, T, C)"""
        raise NotImplementedError

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (..., C) -> (..., V)"""
        return ops.linear(*self.head_inputs(hidden))

    def head_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """hidden (B, T, C) -> rows (B, T, K) and a matrix (V, K) whose product is the logits"""
        raise NotImplementedError

    def forward(self, source: Array, source_mask: Array | None, target: Array) -> Tensor:
        """source (B, S), source_mask (B, S), target (B, T) -> logits (B, T, V): position t scores what follows it"""
        return self.logits(self.decode(target, self.encode(source, source_mask), source_mask))

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """inputs (source, source_mask, target), targets (B, T) -> mean negative log-likelihood of the targets, in nats

        In training their labels are smoothed; in evaluation they are not, so that losses can be compared.
        """
        source, source_mask, target = inputs
        hidden = self.decode(target, self.encode(source, source_mask), source_mask)
        return ops.linear_cross_entropy(
            *self.head_inputs(hidden),
            targets=targets,
            ignore_index=IGNORE,
            label_smoothing=self.config.label_smoothing if self.training else 0.0,
        )

    def example_batch(self, rows: int, tokens: int, source: int = 1, masked: int = 0) -> tuple[Any, Array]:
        ids, targets = super().example_batch(rows, tokens)
        return (abstract((rows, source), np.int64), None, ids), targets

    def decoder(self, ids: Array, *memory: Any) -> Tensor:
        return self.logits(self.decode(ids, *memory))


def visible(mask: Array | None, shape: tuple[int, ...]) -> Array | None:
    """mask (B, S) of a source of `shape` (B, S), True where a token is -> (B, 1, 1, S) as attention wants it

    None if all of it can be seen: a shorter way through the kernel, to the same bits.
    """
    if mask is None:
        return None
    recorded = isinstance(mask, Input)  # the next batch may have padding
    mask = mask if recorded else np.asarray(mask)
    if mask.shape != shape or mask.dtype != bool:
        raise ShapeError(
            f"Seq2Seq: source_mask {mask.shape} {mask.dtype}, source {shape} (must be (B, S) booleans)"
        )
    return None if not recorded and mask.all() else mask[:, None, None, :]


def check_length(owner: str, side: str, ids: Any, limit: int) -> None:
    """Refuse ids that are not rows of at most `limit` tokens."""
    if ids.ndim != 2 or not 1 <= ids.shape[1] <= limit:
        raise ShapeError(
            f"{owner}: {side} ids {ids.shape} (must be (B, T) with T from 1 to block_size, {limit})"
        )
