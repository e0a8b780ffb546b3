"""Seq2Seq: the encoder-decoder transformer, in one file.

    memory = √C? E[source] + positions                          the encoder reads all of the source at once
    memory = norm(memory + attention(memory))                   L times; with norm="pre" x + f(norm(x)) and one more
    memory = norm(memory + mlp(memory))                         norm at the end

    hidden = √C? E[target so far] + positions                   the decoder sees no token that comes later
    hidden = norm(hidden + causal attention(hidden))            L times
    hidden = norm(hidden + attention(hidden, memory))           every block looks at the same memory
    hidden = norm(hidden + mlp(hidden))
    logits = hidden Eᵀ + b                                      or a matrix of its own, lm_head

Weights carry the names of Hugging Face's Marian, and with norm="pre" of Pegasus: `model.encoder.layers.0.fc1.weight`.
R-321 .. R-330, R-333 .. R-336, R-342 (seed 004 ch. 12); conventions C-14 .. C-17, C-24, C-25, C-28, C-31, E-004-33
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.models.model import IGNORE, Model
from chainrule.models.seq2seq_program import program_of
from chainrule.nn import (
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    LearnedPositions,
    Linear,
    MultiHeadAttention,
    SinusoidalPositions,
)
from chainrule.nn.attention import Cache
from chainrule.nn.init import normal, parameter, zeros
from chainrule.nn.program import Instruction

ACTIVATIONS = {"relu": ops.relu, "gelu": ops.gelu, "gelu_tanh": ops.gelu_tanh, "silu": ops.silu}
COUNTS = ("n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size", "source_vocab_size")
CHOICES = {"norm": ("post", "pre"), "positions": ("sinusoidal", "learned"), "activation": tuple(ACTIVATIONS)}
# Of each decoder block: what it remembers of its own past, and of the source.
Caches: TypeAlias = Sequence[tuple[Cache | None, Cache | None]]
Through: TypeAlias = Callable[..., Tensor]  # `Model.through`: calls a block, and may do so again in backward
STD = 0.02  # of the matrix that makes logits: small, so that the first loss is near ln V


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The size of an encoder-decoder.

    >>> import chainrule as cr
    >>> cr.models.Seq2SeqConfig(n_layer=2, n_head=2, n_embd=32, vocab_size=65).n_params
    62849
    """

    n_layer: int = 3
    """Blocks of the encoder, and as many of the decoder."""
    n_head: int = 4
    """Attention heads per block."""
    n_embd: int = 128
    """Width of the residual stream; a multiple of the heads."""
    n_hidden: int | None = None
    """Width inside the MLP; four times n_embd unless given."""
    block_size: int = 128
    """Longest source and longest target, in tokens."""
    vocab_size: int = 256
    """Different tokens of the target, and of the source."""
    source_vocab_size: int | None = None
    """Different tokens of the source, if it has a vocabulary and embeddings of its own."""
    norm: str = "post"
    """Layer norm after each residual sum (post), or before each sublayer and at the end (pre)."""
    norm_eps: float = 1e-5
    """Added to the variance before its root."""
    positions: str = "sinusoidal"
    """Added to the embeddings: sinusoidal (all sines, then all cosines) or learned."""
    activation: str = "relu"
    """Between the two layers of an MLP: relu, gelu, gelu_tanh or silu."""
    bias: bool = False
    """Biases in the projections of attention; all other layers have one."""
    tied: bool = False
    """The head shares the matrix of the target's embedding."""
    scale_embedding: bool = False
    """Embeddings times √n_embd before positions are added."""
    dropout: float = 0.1
    """Share set to 0 in training: of embeddings, attention weights, MLP activations and what each sublayer adds."""
    label_smoothing: float = 0.0
    """Share of each target's mass spread over all tokens in training; ε over the others alone is ε V / (V - 1) here."""
    scheduled_sampling: float = 0.0
    """Share of its own guesses among what the decoder reads in training; grows from 0 to this until the last step."""

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"Seq2Seq: {name} is {value} (must be at least 1)")
        if self.n_embd % self.n_head:
            raise ConfigError(
                f"Seq2Seq: n_embd is {self.n_embd}, n_head {self.n_head} (heads must divide the width)"
            )
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"Seq2Seq: {name} is {getattr(self, name)!r} (must be one of {', '.join(choices)})"
                )
        for name in ("dropout", "label_smoothing", "scheduled_sampling"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(
                    f"Seq2Seq: {name} is {getattr(self, name)} (must be at least 0 and below 1)"
                )
        if not self.norm_eps > 0:
            raise ConfigError(f"Seq2Seq: norm_eps is {self.norm_eps} (must be positive)")

    @classmethod
    def base(cls) -> Seq2SeqConfig:
        """The base model of "Attention is all you need" as seed 004 §12.1 specifies it."""
        return cls(n_layer=6, n_head=8, n_embd=512, block_size=512, vocab_size=50000, norm_eps=1e-6)

    @property
    def inside(self) -> int:
        """Width inside the MLP."""
        return 4 * self.n_embd if self.n_hidden is None else self.n_hidden

    @property
    def n_params(self) -> int:
        """The number of parameters."""
        C, V, norm = self.n_embd, self.vocab_size, 2 * self.n_embd
        attention = 4 * C * C + (4 * C if self.bias else 0)
        mlp = 2 * C * self.inside + self.inside + C
        blocks = self.n_layer * (3 * attention + 2 * mlp + 5 * norm)
        embeddings = V * C + (0 if self.source_vocab_size is None else self.source_vocab_size * C)
        places = 2 * self.block_size * C if self.positions == "learned" else 0
        ends = 2 * norm if self.norm == "pre" else 0
        return embeddings + places + blocks + ends + V + (0 if self.tied else V * C)


class Block(Layer):
    """What layers of the encoder and of the decoder have: self-attention, an MLP, and how a sublayer is added."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        self.pre = config.norm == "pre"
        self.activation = config.activation
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
        return self.fc2(self.dropout(ACTIVATIONS[self.activation](self.fc1(hidden))))


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

    def forward(
        self, hidden: Tensor, memory: Tensor, mask: Array | None, caches: tuple[Cache | None, Cache | None]
    ) -> Tensor:
        """hidden (B, T, C), memory (B, S, C), its mask as `visible` makes it -> (B, T, C)"""
        # A view of the block's own: it sums the gradients of keys and values here, so that a block that is computed
        # again adds to those of other blocks in the same order.
        memory = memory.reshape(*memory.shape)
        before = partial(self.self_attn, causal=True, cache=caches[0])
        source = partial(self.encoder_attn, context=memory, mask=mask, cache=caches[1])
        hidden = self.add(hidden, self.self_attn_layer_norm, before)
        hidden = self.add(hidden, self.encoder_attn_layer_norm, source)
        return self.add(hidden, self.final_layer_norm, self.feed_forward)


class Stack(Layer):
    """What the encoder and the decoder have in common: embeddings with positions at the start, a norm at the end."""

    def __init__(self, config: Seq2SeqConfig, vocab_size: int | None) -> None:
        self.limit = config.block_size
        self.scale = config.n_embd**0.5 if config.scale_embedding else 1.0
        if vocab_size is not None:  # else the embedding is shared, and belongs to neither
            self.embed_tokens = embedding_of(config, vocab_size)
        self.embed_positions: LearnedPositions | SinusoidalPositions = (
            LearnedPositions(config.block_size, config.n_embd, init=partial(normal, std=spread(config)))
            if config.positions == "learned"
            else SinusoidalPositions(config.n_embd, layout="half")
        )
        self.dropout = Dropout(config.dropout)
        self.layer_norm = norm_of(config) if config.norm == "pre" else None

    def embed(self, ids: Array, table: Embedding, start: int = 0) -> Tensor:
        """ids (B, T) at positions from `start` on -> (B, T, C)"""
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= self.limit - start:
            raise ShapeError(
                f"Seq2Seq: {self._name} ids {ids.shape} from position {start} "
                f"(must be (B, T) and end within block_size, {self.limit})"
            )
        hidden = table(ids)
        if self.scale != 1:
            hidden = hidden * self.scale
        return self.dropout(self.embed_positions(hidden, start))

    def end(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) after the last block -> (B, T, C)"""
        return hidden if self.layer_norm is None else self.layer_norm(hidden)


class Encoder(Stack):
    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config, config.source_vocab_size)
        self.layers = [EncoderLayer(config) for _ in range(config.n_layer)]

    def forward(self, ids: Array, mask: Array | None, table: Embedding, through: Through) -> Tensor:
        """ids (B, S), mask as `visible` makes it -> (B, S, C)"""
        hidden = self.embed(ids, table)
        for layer in self.layers:
            hidden = through(layer, hidden, mask)
        return self.end(hidden)


class Decoder(Stack):
    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config, None if config.source_vocab_size is None else config.vocab_size)
        self.layers = [DecoderLayer(config) for _ in range(config.n_layer)]

    def forward(
        self,
        ids: Array,
        memory: Tensor,
        mask: Array | None,
        table: Embedding,
        through: Through,
        caches: Caches,
        start: int,
    ) -> Tensor:
        """ids (B, T), memory (B, S, C), its mask as `visible` makes it -> (B, T, C)"""
        hidden = self.embed(ids, table, start)
        for layer, cache in zip(self.layers, caches, strict=True):
            hidden = through(layer, hidden, memory, mask, cache)
        return self.end(hidden)


class Seq2Seq(Model):
    """A model that reads one sequence and writes another.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.Seq2SeqConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> source, target = np.array([[5, 6, 7, 8]]), np.array([[1, 5]])
    >>> cr.models.Seq2Seq(config)(source, source > 0, target).shape
    (1, 2, 10)
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.model: dict[str, Any] = {"encoder": Encoder(config), "decoder": Decoder(config)}
        if config.source_vocab_size is None:
            self.model = {"shared": embedding_of(config, config.vocab_size)} | self.model
        self.final_logits_bias = parameter(zeros, (1, config.vocab_size), decay=False)
        if not config.tied:
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, init=partial(normal, std=STD))

    def forward(self, source: Array, source_mask: Array | None, target: Array) -> Tensor:
        """source (B, S), source_mask (B, S), target (B, T) -> logits (B, T, V): position t scores what follows it"""
        return self.logits(self.decode(target, self.encode(source, source_mask), source_mask))

    def encode(self, source: Array, source_mask: Array | None = None) -> Tensor:
        """source (B, S), source_mask (B, S), True where a token is -> memory (B, S, C)"""
        source = np.asarray(source)
        mask = visible(source_mask, source.shape)
        return self.model["encoder"](source, mask, self.table("encoder"), self.through)

    def decode(
        self,
        target: Array,
        memory: Tensor,
        source_mask: Array | None = None,
        *,
        caches: Caches | None = None,
        start: int = 0,
    ) -> Tensor:
        """target (B, T), memory (B, S, C), source_mask (B, S) -> what the head reads (B, T, C)

        With `caches`, the target goes on at position `start`, after what they remember of it.
        """
        mask = visible(source_mask, memory.shape[:2])
        caches = [(None, None)] * self.config.n_layer if caches is None else caches
        target, table = np.asarray(target), self.table("decoder")
        return self.model["decoder"](target, memory, mask, table, self.through, caches, start)

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (..., C) -> (..., V)"""
        return ops.linear(hidden, self.head.weight, self.final_logits_bias.reshape(-1))

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """inputs (source, source_mask, target), targets (B, T) -> mean negative log-likelihood of the targets, in nats

        In training their labels are smoothed; in evaluation they are not, so that losses can be compared.
        """
        source, source_mask, target = inputs
        hidden = self.decode(target, self.encode(source, source_mask), source_mask)
        # The bias is one more column of the matrix, whose input is 1: so the logits need not be stored.
        ones = np.ones((*hidden.shape[:-1], 1), hidden.dtype)
        return ops.linear_cross_entropy(
            ops.concat(hidden, ones, axis=-1),
            ops.concat(self.head.weight, self.final_logits_bias.transpose(1, 0), axis=1),
            targets=targets,
            ignore_index=IGNORE,
            label_smoothing=self.config.label_smoothing if self.training else 0.0,
        )

    def program(self) -> list[Instruction]:
        """The decoder and the head over new tokens with a cache, for `generate.Translation`."""
        return program_of(self)

    def table(self, side: str) -> Embedding:
        """The embedding that the "encoder" or the "decoder" looks up tokens in."""
        found: Embedding = self.model["shared"] if "shared" in self.model else self.model[side].embed_tokens
        return found

    @property
    def head(self) -> Embedding | Linear:
        """Whose matrix turns the last hidden row into logits."""
        return self.table("decoder") if self.config.tied else self.lm_head


def visible(mask: Array | None, shape: tuple[int, ...]) -> Array | None:
    """mask (B, S) of a source of `shape` (B, S), True where a token is -> (B, 1, 1, S) as attention wants it

    None if all of it can be seen.
    """
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.shape != shape or mask.dtype != bool:
        raise ShapeError(
            f"Seq2Seq: source_mask {mask.shape} {mask.dtype}, source {shape} (must be (B, S) booleans)"
        )
    return None if mask.all() else mask[:, None, None, :]


def attention_of(config: Seq2SeqConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.n_embd, config.n_head, bias=config.bias, dropout=config.dropout)


def norm_of(config: Seq2SeqConfig) -> LayerNorm:
    return LayerNorm(config.n_embd, eps=config.norm_eps)


def embedding_of(config: Seq2SeqConfig, vocab_size: int) -> Embedding:
    scale = config.n_embd**0.5 if config.scale_embedding else 1.0
    return Embedding(vocab_size, config.n_embd, init=partial(normal, std=spread(config) / scale))


def spread(config: Seq2SeqConfig) -> float:
    """The standard deviation of embeddings, after scaling: like positions about 1; less if they make the logits too."""
    if not config.tied:
        return 1.0
    return STD * config.n_embd**0.5 if config.scale_embedding else config.n_embd**-0.5
