"""BERT: a transformer encoder that reads a text in both directions, and its pre-training, in one file.

    hidden = layernorm(words[ids] + positions[0..T-1] + segments[A or B])
    hidden = layernorm(hidden + attention(hidden))              L times: post-norm; every token sees every other, but
    hidden = layernorm(hidden + mlp(hidden))                    none sees padding
    pooled = tanh(dense(hidden of [CLS]))                       one vector for the whole text
    words  = layernorm(gelu(dense(hidden))) wordsᵀ + bias       masked words: the embedding's matrix again
    pairs  = dense(pooled)                                      next sentence: does B follow A?

Weights carry the names of Hugging Face's BertForPreTraining (`bert.encoder.layer.0.attention.self.query.weight`), or
without next sentence those of BertForMaskedLM; matrices are stored (out, in). Other heads are in `bert_heads`.
R-332, R-367 .. R-370 (seed 004 §12.7, §13.2, §13.3; Devlin et al. 2018); conventions C-14, C-31, C-32
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.models.model import IGNORE, Model
from chainrule.nn import Dropout, Embedding, Layer, LayerNorm, Linear
from chainrule.nn.init import normal, parameter, zeros
from chainrule.random import next_key

STD = 0.02  # of the initial weights
init = partial(normal, std=STD)


@dataclass(frozen=True)
class BERTConfig:
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
    """Different tokens."""
    n_segments: int = 2
    """Different texts in a row: A and B."""
    dropout: float = 0.1
    """Share set to 0 in training: of attention weights, of the embeddings, of what each part adds to the stream."""
    norm_eps: float = 1e-12
    """Added to the variance before its root."""

    def __post_init__(self) -> None:
        for name in ("n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size", "n_segments"):
            if getattr(self, name) < 1:
                raise ConfigError(f"BERT: {name} is {getattr(self, name)} (must be at least 1)")
        if self.n_embd % self.n_head:
            raise ConfigError(
                f"BERT: n_embd is {self.n_embd}, n_head {self.n_head} (heads must divide the width)"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"BERT: dropout is {self.dropout} (must be at least 0 and below 1)")
        if not self.norm_eps > 0:
            raise ConfigError(f"BERT: norm_eps is {self.norm_eps} (must be positive)")

    def body_params(self, *, pooled: bool) -> int:
        """The number of parameters of the encoder, with or without the pooler."""
        C, hidden = self.n_embd, self.n_hidden
        tables = (self.vocab_size + self.block_size + self.n_segments) * C + 2 * C
        block = 4 * (C * C + C) + 2 * C * hidden + hidden + C + 4 * C
        return tables + self.n_layer * block + pooled * (C * C + C)

    @property
    def n_params(self) -> int:
        """The number of parameters."""
        return self.body_params(pooled=True)


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

    def forward(self, hidden: Tensor, mask: Array | None) -> Tensor:
        """hidden (B, T, C), mask (B, T) -> (B, T, C)"""
        for block in self.layer:
            hidden = block(hidden, mask)
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
        return self.encoder(hidden, mask)


@dataclass(frozen=True)
class BERTPretrainingConfig(BERTConfig):
    """The size of a BERT in pre-training.

    >>> import chainrule as cr
    >>> base = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_hidden": 3072, "block_size": 512, "vocab_size": 30522}
    >>> cr.models.BERTPretrainingConfig(**base).n_params
    110106428
    """

    next_sentence: bool = True
    """Learn too whether B follows A; without it there is neither pooler nor head for it, as in RoBERTa."""

    @property
    def n_params(self) -> int:
        C = self.n_embd
        words = C * C + C + 2 * C + self.vocab_size
        pairs = self.next_sentence * (2 * C + 2)
        return self.body_params(pooled=self.next_sentence) + words + pairs


class Transform(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.dense = Linear(config.n_embd, config.n_embd, init=init)
        self.LayerNorm = LayerNorm(config.n_embd, eps=config.norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (..., C) -> (..., C)"""
        return self.LayerNorm(ops.gelu(self.dense(hidden)))


class WordHead(Layer):
    """Scores of all words, from the matrix of the embedding, which is the caller's."""

    def __init__(self, config: BERTConfig) -> None:
        self.transform = Transform(config)
        self.bias = parameter(zeros, (config.vocab_size,))

    def forward(self, hidden: Tensor, words: Tensor) -> Tensor:
        """hidden (..., C), words (V, C) -> logits (..., V)"""
        return ops.linear(self.transform(hidden), words, self.bias)


class PretrainingHeads(Layer):
    def __init__(self, config: BERTPretrainingConfig) -> None:
        self.predictions = WordHead(config)
        if config.next_sentence:
            self.seq_relationship = Linear(config.n_embd, 2, init=init)


class BERTPretraining(Model):
    """Masked words, and whether the second text follows the first: learnt from text alone.

    A batch is `data.Masked` (ids, mask, segments, follows) and targets, which are IGNORE where no word is asked for.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.BERTPretrainingConfig(n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    >>> cr.models.BERTPretraining(config)(np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: BERTPretrainingConfig) -> None:
        super().__init__(config)
        self.bert = BERT(config, pooled=config.next_sentence)
        self.cls = PretrainingHeads(config)

    def forward(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> logits (B, T, V) of the word that belongs at each place"""
        return self._words(self.bert(ids, mask, segments))

    def follows(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> logits (B, 2): the second text follows, it does not"""
        if not self.config.next_sentence:
            raise ConfigError("BERT: next_sentence is off (follows needs a model that was trained with it)")
        return self._pairs(self.bert(ids, mask, segments))

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        first, *rest = self.losses(inputs, targets)
        return sum(rest, first)

    def losses(self, inputs: Any, targets: Array) -> tuple[Tensor, ...]:
        """The mean over the selected tokens; with next sentence, then the mean over the pairs. In nats."""
        ids, mask, segments, follows = inputs
        hidden = self.bert(ids, mask, segments)  # (B, T, C)
        places = np.flatnonzero(np.asarray(targets) != IGNORE)  # (N,)
        # The head is the widest layer by far: it is computed where a word is asked for, about one place in seven.
        logits = self._words(rows_at(hidden, places))  # (N, V)
        words = ops.cross_entropy(logits, targets=np.asarray(targets).reshape(-1)[places])
        if not self.config.next_sentence:
            return (words,)
        follows = np.asarray(follows)
        wanted = np.where(
            follows == IGNORE, IGNORE, 1 - follows
        )  # in published weights class 0 says: it follows
        return words, ops.cross_entropy(self._pairs(hidden), targets=wanted, ignore_index=IGNORE)

    def counts(self, inputs: Any, targets: Array) -> tuple[int, ...]:
        """How many tokens are selected; with next sentence, then how many pairs there are."""
        words = super().counts(inputs, targets)
        return (*words, *super().counts(inputs, inputs.follows)) if self.config.next_sentence else words

    def _words(self, hidden: Tensor) -> Tensor:
        return self.cls.predictions(hidden, self.bert.embeddings.word_embeddings.weight)

    def _pairs(self, hidden: Tensor) -> Tensor:
        return self.cls.seq_relationship(self.bert.pooler(hidden))
