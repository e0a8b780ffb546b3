"""BERT: a transformer encoder that reads a text in both directions, in one file.

    hidden = layernorm(words[ids] + positions[0..T-1] + segments[A or B])
    hidden = layernorm(hidden + attention(hidden))              L times: post-norm; every token sees every other, but
    hidden = layernorm(hidden + mlp(hidden))                    none sees padding
    pooled = tanh(dense(hidden of [CLS]))                       one vector for the whole text

How it learns from text is in `pretraining`, what it is for in `heads`. Weights carry the names of Hugging
Face's BertModel (`encoder.layer.0.attention.self.query.weight`); matrices are stored (out, in).
(Devlin et al. 2018)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from chainrule.models.model import Config, Model
from chainrule.nn import Dropout, Embedding, Layer, LayerNorm, Linear
from chainrule.nn.init import normal
from chainrule.random import next_key
from chainrule.validate import Check

STD = 0.02  # of the initial weights
init = partial(normal, std=STD)


@dataclass(frozen=True)
class BERTConfig(Config):
    """The size of a BERT.

    >>> import chainrule as cr
    >>> base = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_hidden": 3072, "block_size": 512, "vocab_size": 30522}
    >>> cr.models.BERTConfig(**base).n_params
    109482240
    """

    n_layer: int = 4
    """Blocks."""
    n_head: int = 4
    """Attention heads per block."""
    n_embd: int = 128
    """Width of the residual stream; a multiple of the heads."""
    n_hidden: int = 512
    """Width inside the MLP."""
    block_size: int = 128
    """Longest text, in tokens."""
    vocab_size: int = 256
    """Vocabulary size."""
    n_segments: int = 2
    """Different texts in a row: A and B."""
    dropout: float = 0.1
    """Fraction set to 0 in training: of attention weights, of the embeddings, of what each part adds to the stream."""
    norm_eps: float = 1e-12
    """Added to the variance before its root."""

    def __post_init__(self) -> None:
        counts = ("n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size", "n_segments")
        check = Check("BERT", self)
        check.at_least(1, *counts)
        check.divides("n_head", "n_embd", "heads must divide the width")
        check.fraction("dropout")
        check.positive("norm_eps")


class Embeddings(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.word_embeddings = Embedding(config.vocab_size, config.n_embd, init=init)
        self.position_embeddings = Embedding(config.block_size, config.n_embd, init=init)
        self.token_type_embeddings = Embedding(config.n_segments, config.n_embd, init=init)
        self.LayerNorm = LayerNorm(config.n_embd, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Array, segments: Array) -> Tensor:
        """ids (B, T), segments (B, T) -> (B, T, C)"""
        positions = self.position_embeddings(np.arange(ids.shape[1]))  # (T, C)
        hidden = self.word_embeddings(ids) + positions + self.token_type_embeddings(segments)
        return self.dropout(self.LayerNorm(hidden))


class SelfAttention(Layer):
    """Each position looks at all that are not padding."""

    def __init__(self, config: BERTConfig) -> None:
        C = config.n_embd
        self.n_head = config.n_head
        self.dropout = config.dropout
        self.query = Linear(C, C, init=init)
        self.key = Linear(C, C, init=init)
        self.value = Linear(C, C, init=init)

    def forward(self, hidden: Tensor, mask: Array | None) -> Tensor:
        """hidden (B, T, C), mask (B, T) -> (B, T, C), heads joined"""
        B, T, C = hidden.shape
        shape = (B, T, self.n_head, C // self.n_head)
        q, k, v = (
            project(hidden).reshape(*shape).transpose(0, 2, 1, 3)  # (B, H, T, D)
            for project in (self.query, self.key, self.value)
        )
        drop = self.dropout if self.training else 0.0
        mixed = ops.attention(
            q,
            k,
            v,
            mask=None if mask is None else mask[:, None, None, :],
            dropout=drop,
            key=next_key("dropout") if drop else None,
        )
        return mixed.transpose(0, 2, 1, 3).reshape(B, T, C)


class Output(Layer):
    """Back into the stream: layernorm(hidden + dropout(dense(inside))), at the end of both parts of a block."""

    def __init__(self, config: BERTConfig, width: int) -> None:
        self.dense = Linear(width, config.n_embd, init=init)
        self.LayerNorm = LayerNorm(config.n_embd, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, inside: Tensor, hidden: Tensor) -> Tensor:
        """inside (B, T, width), hidden (B, T, C) -> (B, T, C)"""
        return self.LayerNorm(hidden + self.dropout(self.dense(inside)))


class Attention(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.self = SelfAttention(config)
        self.output = Output(config, config.n_embd)

    def forward(self, hidden: Tensor, mask: Array | None) -> Tensor:
        """hidden (B, T, C), mask (B, T) -> (B, T, C)"""
        return self.output(self.self(hidden, mask), hidden)


class Intermediate(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.dense = Linear(config.n_embd, config.n_hidden, init=init)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, T, n_hidden)"""
        return ops.gelu(self.dense(hidden))


class Block(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Output(config, config.n_hidden)

    def forward(self, hidden: Tensor, mask: Array | None) -> Tensor:
        """hidden (B, T, C), mask (B, T) -> (B, T, C)"""
        hidden = self.attention(hidden, mask)
        return self.output(self.intermediate(hidden), hidden)


class Encoder(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.layer = [Block(config) for _ in range(config.n_layer)]

    def forward(self, hidden: Tensor, mask: Array | None, through: Callable[..., Tensor]) -> Tensor:
        """hidden (B, T, C), mask (B, T), `through` as in Model -> (B, T, C)"""
        for block in self.layer:
            hidden = through(block, hidden, mask)
        return hidden


class Pooler(Layer):
    """The text as one vector: what stands at [CLS], in a basis of its own."""

    def __init__(self, config: BERTConfig) -> None:
        self.dense = Linear(config.n_embd, config.n_embd, init=init)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, C)"""
        B, T, _ = hidden.shape
        return ops.tanh(self.dense(rows_at(hidden, T * np.arange(B))))


def rows_at(hidden: Tensor, places: Array) -> Tensor:
    """hidden (B, T, C), places (N,) among the B T tokens -> (N, C)"""
    return ops.embedding(hidden.reshape(-1, hidden.shape[-1]), ids=places)  # a gather with native kernels


class BERT(Model):
    """The body that all heads share. It has no loss of its own.

    >>> import chainrule as cr, numpy as np
    >>> body = cr.models.BERT(cr.models.BERTConfig(n_layer=1, n_head=2, n_embd=16, vocab_size=10))
    >>> hidden = body(np.array([[1, 2, 3, 0]]), mask=np.array([[True, True, True, False]]))
    >>> hidden.shape, body.pooler(hidden).shape
    ((1, 4, 16), (1, 16))
    """

    def __init__(self, config: BERTConfig, *, pooled: bool = True) -> None:
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        if pooled:
            self.pooler = Pooler(config)

    def forward(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T) True where a token is (default: everywhere), segments (B, T) -> (B, T, C)"""
        ids, limit = np.asarray(ids), self.config.block_size
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= limit:
            raise ShapeError(f"BERT: ids {ids.shape} (must be (B, T) with T from 1 to {limit})")
        for name, given in (("mask", mask), ("segments", segments)):
            if given is not None and np.shape(given) != ids.shape:
                raise ShapeError(f"BERT: {name} {np.shape(given)}, ids {ids.shape} (must be equal)")
        segments = np.zeros_like(ids) if segments is None else segments
        hidden = self.embeddings(ids, segments)
        if mask is not None:
            mask = np.asarray(mask, bool)
            mask = None if mask.all() else mask  # nothing to hide: a shorter way through the kernel
        return self.encoder(hidden, mask, self.through)
