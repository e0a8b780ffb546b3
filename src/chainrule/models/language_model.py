"""What training, generation and inspection know of a model of text: ids in, scores of the next token out."""

from __future__ import annotations

from typing import Any

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.nn import Layer

IGNORE = -1  # a target that counts for nothing, such as padding


class LanguageModel(Layer):
    """A model of text. `config` has at least `vocab_size` and `block_size`, the longest context."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def n_params(cls, config: Any) -> int:
        """The number of parameters of a model of this size, without making it."""
        return int(config.n_params)

    @property
    def training_window(self) -> int:
        """Tokens in a row of a training batch."""
        return int(self.config.block_size)

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> logits (B, T, V): position t scores what follows ids[:, : t + 1]"""
        raise NotImplementedError

    def loss(self, ids: Array, targets: Array) -> Tensor:
        """ids (B, T), targets (B, T) -> mean negative log-likelihood of the targets that count, in nats"""
        return ops.cross_entropy(self(ids), targets=targets, ignore_index=IGNORE)
