"""BERT: a transformer encoder that reads a text in both directions, in one file.

    hidden = layernorm(words[ids] + positions[0..T-1] + segments[A or B])
    hidden = layernorm(hidden + attention(hidden))              L times: post-norm; every token sees every other, but
    hidden = layernorm(hidden + mlp(hidden))                    none sees padding
    pooled = tanh(dense(hidden of [CLS]))                       one vector for the whole text

With norm="pre" each part adds f(layernorm(hidden)) to hidden, and one more layernorm ends the stack.
RoBERTa, DistilBERT, ELECTRA and MPNet are the same model but for a field each: one segment or none, narrow embeddings
with a projection (ELECTRA), a bias for each distance (MPNet), another activation of the pooled vector.

How it learns from text is in `pretraining`, what it is for in `heads`. Weights carry the names of Hugging Face's
BertModel (`encoder.layer.0.attention.self.query.weight`); matrices are stored (out, in).
(Devlin et al. 2018)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import Input, constant
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ConfigError, ShapeError
from chainrule.models.model import Config, Model
from chainrule.nn import DistanceBias, Dropout, Embedding, KeyValuePrefix, Layer, LayerNorm, Linear
from chainrule.nn.activation import Activation
from chainrule.nn.attention import attend
from chainrule.nn.init import normal
from chainrule.random import next_key
from chainrule.types import as_ids
from chainrule.validate import Check

STD = 0.02  # of the initial weights of a layer with WIDTH inputs, as in the paper
WIDTH = 768
# Variants, and the activation of the vector that their classifiers read.
VARIANTS: dict[str, Activation] = {
    "bert": ops.tanh,
    "roberta": ops.tanh,
    "distilbert": ops.relu,
    "electra": ops.gelu,
    "mpnet": ops.tanh,
}


def init(shape: Shape, rng: np.random.Generator) -> Array:
    """N(0, σ²), σ larger the fewer inputs there are: with σ = 0.02 all scores of a narrow model begin near 0, and
    attention looks everywhere alike for thousands of steps."""
    return normal(shape, rng, std=STD * math.sqrt(WIDTH / shape[-1]))


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
    """Different texts in a row: A and B; with 1 or 0 they are not told apart."""
    dropout: float = 0.1
    """Fraction set to 0 in training: of attention weights, of the embeddings, of what each part adds to the stream."""
    norm_eps: float = 1e-12
    """Added to the variance before its root."""
    norm: str = "post"
    """Layer norm after each residual sum (post), or before each part and at the end (pre)."""
    embedding_size: int | None = None
    """Width of the embeddings; n_embd unless given, else a projection follows, as in ELECTRA."""
    relative_buckets: int = 0
    """Buckets of distances between tokens, each with a learned bias of the scores, as in MPNet; 0: no such bias."""
    variant: str = "bert"
    """Whose form it has for other programs: bert, roberta, distilbert, electra or mpnet."""

    def __post_init__(self) -> None:
        counts = ("n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size", "embedding_size")
        check = Check("BERT", self)
        check.at_least(1, *counts)
        check.at_least(0, "n_segments", "relative_buckets")
        check.require(
            self.relative_buckets not in (1, 2, 3), "relative_buckets", rule="must be 0, or at least 4"
        )
        check.divides("n_head", "n_embd", "heads must divide the width")
        check.fraction("dropout")
        check.positive("norm_eps")
        check.one_of("norm", ("post", "pre"))
        check.one_of("variant", VARIANTS)

    @property
    def width(self) -> int:
        """Width of the embeddings."""
        return self.n_embd if self.embedding_size is None else self.embedding_size


class Embeddings(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.word_embeddings = Embedding(config.vocab_size, config.width, init=init)
        self.position_embeddings = Embedding(config.block_size, config.width, init=init)
        if config.n_segments:
            self.token_type_embeddings = Embedding(config.n_segments, config.width, init=init)
        self.n_segments = config.n_segments
        self.LayerNorm = LayerNorm(config.width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Array, segments: Array) -> Tensor:
        """ids (B, T), segments (B, T) -> (B, T, E)"""
        positions = self.position_embeddings(constant(np.arange(ids.shape[1])))  # (T, E)
        hidden = self.word_embeddings(ids) + positions
        if self.n_segments:
            hidden = hidden + self.token_type_embeddings(segments)
        return self.dropout(self.LayerNorm(hidden))


class SelfAttention(Layer):
    """Each position looks at all that are not padding."""

    def __init__(self, config: BERTConfig) -> None:
        C = config.n_embd
        self.n_head = config.n_head
        self.dropout = config.dropout
        self.prefix: KeyValuePrefix | None = None
        self.query = Linear(C, C, init=init)
        self.key = Linear(C, C, init=init)
        self.value = Linear(C, C, init=init)

    def forward(self, hidden: Tensor, mask: Array | None, bias: Tensor | None) -> Tensor:
        """hidden (B, T, C), mask (B, T), bias by distance (H, 2N - 1) -> (B, T, C), heads joined"""
        B, T, C = hidden.shape
        shape = (B, T, self.n_head, C // self.n_head)
        q, k, v = (
            project(hidden).reshape(*shape).transpose(0, 2, 1, 3)  # (B, H, T, D)
            for project in (self.query, self.key, self.value)
        )
        visible = None if mask is None else mask[:, None, None, :]
        if self.prefix is not None:
            if bias is not None:
                rule = "must be a BERT without a bias by distance: a prefix has no distance"
                raise ConfigError(f"prefix: this model has relative_buckets ({rule})")
            k, v = self.prefix(k, v)
            visible = self.prefix.visible(visible)
        drop = self.dropout if self.training else 0.0
        mixed = attend(q, k, v, bias, mask=visible, dropout=drop, key=next_key("dropout") if drop else None)
        return mixed.transpose(0, 2, 1, 3).reshape(B, T, C)


class Output(Layer):
    """Back into the stream, at the end of both parts of a block: layernorm(hidden + dropout(dense(inside)))

    With norm="pre" the part reads layernorm(hidden), and hidden + dropout(dense(inside)) is all that follows.
    """

    def __init__(self, config: BERTConfig, width: int) -> None:
        self.pre = config.norm == "pre"
        self.dense = Linear(width, config.n_embd, init=init)
        self.LayerNorm = LayerNorm(config.n_embd, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def read(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> what the part of the block reads (B, T, C)"""
        return self.LayerNorm(hidden) if self.pre else hidden

    def forward(self, inside: Tensor, hidden: Tensor) -> Tensor:
        """inside (B, T, width), hidden (B, T, C) -> (B, T, C)"""
        hidden = hidden + self.dropout(self.dense(inside))
        return hidden if self.pre else self.LayerNorm(hidden)


class Attention(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.self = SelfAttention(config)
        self.output = Output(config, config.n_embd)

    def forward(self, hidden: Tensor, mask: Array | None, bias: Tensor | None) -> Tensor:
        """hidden (B, T, C), mask (B, T), bias (H, 2N - 1) -> (B, T, C)"""
        return self.output(self.self(self.output.read(hidden), mask, bias), hidden)


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

    def forward(self, hidden: Tensor, mask: Array | None, bias: Tensor | None = None) -> Tensor:
        """hidden (B, T, C), mask (B, T), bias (H, 2N - 1) -> (B, T, C)"""
        hidden = self.attention(hidden, mask, bias)
        return self.output(self.intermediate(self.output.read(hidden)), hidden)


class Encoder(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.layer = [Block(config) for _ in range(config.n_layer)]
        self.relative_attention_bias = (
            DistanceBias(
                config.relative_buckets, config.n_head, config.block_size, init=partial(normal, std=STD)
            )
            if config.relative_buckets
            else None
        )
        self.LayerNorm = LayerNorm(config.n_embd, eps=config.norm_eps) if config.norm == "pre" else None

    def forward(self, hidden: Tensor, mask: Array | None, through: Callable[..., Tensor]) -> Tensor:
        """hidden (B, T, C), mask (B, T), `through` as in Model -> (B, T, C)"""
        bias = None if self.relative_attention_bias is None else self.relative_attention_bias()
        for block in self.layer:
            hidden = through(block, hidden, mask, bias)
        return hidden if self.LayerNorm is None else self.LayerNorm(hidden)


class Pooler(Layer):
    """The text as one vector: what stands at [CLS], in a basis of its own."""

    def __init__(self, config: BERTConfig) -> None:
        self.dense = Linear(config.n_embd, config.n_embd, init=init)
        self.activate = VARIANTS[config.variant]

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, C)"""
        B, T, _ = hidden.shape
        return self.activate(self.dense(rows_at(hidden, constant(T * np.arange(B)))))


def _recorded(mask: Any) -> bool:
    """It is the mask of a recording: the next batch may have padding where this one has none."""
    return isinstance(mask, Input) and mask.dtype == bool


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
        if config.embedding_size is not None:
            self.embeddings_project = Linear(config.embedding_size, config.n_embd, init=init)
        self.encoder = Encoder(config)
        if pooled:
            self.pooler = Pooler(config)

    def forward(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T) True where a token is (default: everywhere), segments (B, T) -> (B, T, C)"""
        ids, limit = as_ids(ids), self.config.block_size
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= limit:
            raise ShapeError(f"BERT: ids {ids.shape} (must be (B, T) with T from 1 to {limit})")
        for name, given in (("mask", mask), ("segments", segments)):
            if given is not None and np.shape(given) != ids.shape:
                raise ShapeError(f"BERT: {name} {np.shape(given)}, ids {ids.shape} (must be equal)")
        if segments is None or self.config.n_segments < 2:
            segments = constant(np.zeros(ids.shape, np.int64))
        hidden = self.embeddings(ids, segments)
        if self.config.embedding_size is not None:
            hidden = self.embeddings_project(hidden)  # (B, T, C)
        if mask is not None and not _recorded(mask):
            mask = np.asarray(mask, bool)
            mask = None if mask.all() else mask  # nothing to hide: a shorter way through the kernel
        return self.encoder(hidden, mask, self.through)
