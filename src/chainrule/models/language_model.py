"""What training, generation and inspection know of a model of text: ids in, scores of the next token out."""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.models.model import Model
from chainrule.types import IGNORE


class LanguageModel(Model):
    """A model of text. `config` has at least `vocab_size` and `block_size`, the longest context."""

    any_length: ClassVar[bool] = False
    """Reads rows longer than `block_size` too."""

    @property
    def training_window(self) -> int:
        """Tokens in a row of a training batch."""
        return int(self.config.block_size)

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> logits (B, T, V): position t scores what follows ids[:, : t + 1]"""
        raise NotImplementedError

    def decoder(self, ids: Array, *memory: Any) -> Tensor:
        return self(ids)

    def loss(self, inputs: Array, targets: Array) -> Tensor:
        """inputs (B, T), targets (B, T) -> mean negative log-likelihood of the targets that count, in nats"""
        return ops.cross_entropy(self(inputs), targets=targets, ignore_index=IGNORE)
