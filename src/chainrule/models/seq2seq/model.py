"""Seq2Seq: the encoder-decoder transformer, in one file (its sizes are in `config`).

    memory = √C? E[source] + positions                          the encoder reads all of the source at once
    memory = memory + attention(norm(memory))                   L times, and one more norm at the end; with
    memory = memory + mlp(norm(memory))                         norm="post" norm(x + f(x)), as in the paper

    hidden = √C? E[target so far] + positions                   the decoder sees no token that comes later
    hidden = hidden + causal attention(norm(hidden))            L times
    hidden = hidden + attention(norm(hidden), memory)           every block looks at the same memory
    hidden = hidden + mlp(norm(hidden))
    logits = hidden Eᵀ + b                                      or a matrix of its own, lm_head

Weights carry the names of Hugging Face's Pegasus, with norm="post" of Marian, and with learned positions and a norm of
the embeddings of BART: `model.encoder.layers.0.fc1.weight`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.models.seq2seq.config import Seq2SeqConfig
from chainrule.models.seq2seq.encoder_decoder import STD, EncoderDecoder, Through, check_length, visible
from chainrule.nn import (
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    LearnedPositions,
    Linear,
    MultiHeadAttention,
    SinusoidalPositions,
    activation,
)
from chainrule.nn.init import normal, parameter, zeros
from chainrule.types import as_ids


class Block(Layer):
    """What layers of the encoder and of the decoder have: self-attention, an MLP, and how a sublayer is added."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        self.pre = config.norm == "pre"
        self.activate = activation(config.activation)
        self.dropout = Dropout(config.dropout)
        self.self_attn = attention_of(config)
        self.self_attn_layer_norm = norm_of(config)
        self.fc1 = Linear(config.n_embd, config.inside)
        self.fc2 = Linear(config.inside, config.n_embd)
        self.final_layer_norm = norm_of(config)

    def add(self, hidden: Tensor, norm: LayerNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """What the sublayer makes of hidden (B, T, C), added to it: the gradient has a way around the sublayer."""
        if self.pre:
            return hidden + self.dropout(sublayer(norm(hidden)))
        return norm(hidden + self.dropout(sublayer(hidden)))

    def feed_forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, T, C), each position on its own"""
        return self.fc2(self.dropout(self.activate(self.fc1(hidden))))


class EncoderLayer(Block):
    """Self-attention, then the MLP."""

    def forward(self, hidden: Tensor, mask: Array | None) -> Tensor:
        """hidden (B, S, C), mask as `visible` makes it -> (B, S, C)"""
        hidden = self.add(hidden, self.self_attn_layer_norm, partial(self.self_attn, mask=mask))
        return self.add(hidden, self.final_layer_norm, self.feed_forward)


class DecoderLayer(Block):
    """Causal self-attention, attention to what the encoder made of the source, then the MLP."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.encoder_attn = attention_of(config)
        self.encoder_attn_layer_norm = norm_of(config)

    def forward(self, hidden: Tensor, memory: Tensor, mask: Array | None) -> Tensor:
        """hidden (B, T, C), memory (B, S, C), its mask as `visible` makes it -> (B, T, C)"""
        # A view of the block's own: it sums the gradients of keys and values here, so that a block that is computed
        # again adds to those of other blocks in the same order.
        memory = memory.reshape(*memory.shape)
        before = partial(self.self_attn, causal=True)
        source = partial(self.encoder_attn, context=memory, mask=mask)
        hidden = self.add(hidden, self.self_attn_layer_norm, before)
        hidden = self.add(hidden, self.encoder_attn_layer_norm, source)
        return self.add(hidden, self.final_layer_norm, self.feed_forward)


class Stack(Layer):
    """The encoder, or the decoder: embeddings with positions, then its layers, then perhaps a norm."""

    def __init__(self, config: Seq2SeqConfig, layer: type[Block], vocab_size: int | None) -> None:
        self.limit = config.block_size
        self.scale = config.embedding_scale
        if vocab_size is not None:  # else the embedding is shared, and belongs to neither
            self.embed_tokens = embedding_of(config, vocab_size)
        self.embed_positions: LearnedPositions | SinusoidalPositions = (
            LearnedPositions(config.block_size, config.n_embd, init=partial(normal, std=spread(config)))
            if config.positions == "learned"
            else SinusoidalPositions(config.n_embd, layout="half")
        )
        self.layernorm_embedding = norm_of(config) if config.embedding_norm else None
        self.dropout = Dropout(config.dropout)
        self.layer_norm = norm_of(config) if config.norm == "pre" else None
        self.layers = [layer(config) for _ in range(config.n_layer)]

    def forward(self, ids: Array, table: Embedding, through: Through, *besides: Any) -> Tensor:
        """ids (B, T), and what each layer reads besides -> (B, T, C)"""
        hidden = self.embed(ids, table)
        for layer in self.layers:
            hidden = through(layer, hidden, *besides)
        return hidden if self.layer_norm is None else self.layer_norm(hidden)

    def embed(self, ids: Array, table: Embedding) -> Tensor:
        """ids (B, T) -> (B, T, C)"""
        check_length("Seq2Seq", self._name, ids, self.limit)
        hidden = table(ids)
        if self.scale != 1:
            hidden = hidden * self.scale
        hidden = self.embed_positions(hidden)
        if self.layernorm_embedding is not None:
            hidden = self.layernorm_embedding(hidden)
        return self.dropout(hidden)


class Seq2Seq(EncoderDecoder):
    """A model that reads one sequence and writes another.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.Seq2SeqConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> source, target = np.array([[5, 6, 7, 8]]), np.array([[1, 5]])
    >>> cr.models.Seq2Seq(config)(source, source > 0, target).shape
    (1, 2, 10)
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        shared = config.source_vocab_size is None
        self.model: dict[str, Any] = {
            "encoder": Stack(config, EncoderLayer, config.source_vocab_size),
            "decoder": Stack(config, DecoderLayer, None if shared else config.vocab_size),
        }
        if shared:
            self.model = {"shared": embedding_of(config, config.vocab_size)} | self.model
        self.final_logits_bias = parameter(zeros, (1, config.vocab_size), decay=False)
        if not config.tied:
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, init=partial(normal, std=STD))

    def encode(self, source: Array, source_mask: Array | None = None) -> Tensor:
        """source (B, S), source_mask (B, S), True where a token is -> memory (B, S, C)"""
        source = as_ids(source)
        mask = visible(source_mask, source.shape)
        return self.model["encoder"](source, self.table("encoder"), self.through, mask)

    def decode(self, target: Array, memory: Tensor, source_mask: Array | None = None) -> Tensor:
        """target (B, T), memory (B, S, C), source_mask (B, S) -> what the head reads (B, T, C)"""
        mask = visible(source_mask, memory.shape[:2])
        return self.model["decoder"](as_ids(target), self.table("decoder"), self.through, memory, mask)

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (..., C) -> (..., V)"""
        return ops.linear(hidden, self.head.weight, self.final_logits_bias.reshape(-1))

    def head_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        # The bias is one more column of the matrix, whose input is 1: so the logits need not be stored.
        ones = constant(np.ones((*hidden.shape[:-1], 1), hidden.dtype))
        matrix = ops.concat(self.head.weight, self.final_logits_bias.transpose(1, 0), axis=1)
        return ops.concat(hidden, ones, axis=-1), matrix

    def table(self, side: str) -> Embedding:
        """The embedding that the "encoder" or the "decoder" looks up tokens in."""
        found: Embedding = self.model["shared"] if "shared" in self.model else self.model[side].embed_tokens
        return found

    @property
    def head(self) -> Embedding | Linear:
        """Whose matrix turns the last hidden row into logits."""
        return self.table("decoder") if self.config.tied else self.lm_head


def attention_of(config: Seq2SeqConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.n_embd, config.n_head, bias=config.bias, dropout=config.dropout)


def norm_of(config: Seq2SeqConfig) -> LayerNorm:
    return LayerNorm(config.n_embd, eps=config.norm_eps)


def embedding_of(config: Seq2SeqConfig, vocab_size: int) -> Embedding:
    init = partial(normal, std=spread(config) / config.embedding_scale)
    return Embedding(vocab_size, config.n_embd, init=init)


def spread(config: Seq2SeqConfig) -> float:
    """The standard deviation of embeddings, after scaling: like positions about 1; less if they make the logits too."""
    if not config.tied:
        return 1.0
    return STD * config.n_embd**0.5 if config.scale_embedding else config.n_embd**-0.5
