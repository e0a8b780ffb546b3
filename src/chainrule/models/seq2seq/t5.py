"""T5: an encoder-decoder that knows positions only by their distance, in one file.

    memory = E[source]
    memory = memory + attention(norm(memory); r)                L times; r is a bias of the scores for each distance,
    memory = memory + mlp(norm(memory))                         the same in all layers; the norms divide by the root
                                                                mean square, no layer has a bias
    hidden = E[target so far]
    hidden = hidden + causal attention(norm(hidden); r)         L times
    hidden = hidden + attention(norm(hidden), memory)
    hidden = hidden + mlp(norm(hidden))
    logits = norm(hidden) Eᵀ / √C                               or without the root a matrix of its own, lm_head

Scores are not divided by √D. Weights carry the names of Hugging Face's T5ForConditionalGeneration, but the bias of a
stack, which they keep in its first layer: `encoder.block.0.layer.0.SelfAttention.q.weight`.
(Raffel et al. 2020; gated MLPs: Shazeer 2020)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.models.model import Config
from chainrule.models.seq2seq.encoder_decoder import (
    STARTS,
    STD,
    EncoderDecoder,
    Through,
    check_length,
    visible,
)
from chainrule.nn import DistanceBias, Dropout, Embedding, Layer, Linear, RMSNorm, activation
from chainrule.nn.attention import attend
from chainrule.nn.init import Init, normal
from chainrule.random import next_key
from chainrule.types import as_ids
from chainrule.validate import Check

COUNTS = ("n_layer", "n_head", "n_embd", "head_size", "n_hidden", "block_size", "vocab_size")
LONGEST = 1 << 16  # no weight belongs to a position, so that a file does not bound it


@dataclass(frozen=True)
class T5Config(Config):
    """The size of a T5.

    >>> import chainrule as cr
    >>> cr.models.T5Config(n_layer=6, n_head=8, n_embd=512, n_hidden=2048, vocab_size=32128).n_params      # t5-small
    60506624
    """

    n_layer: int = 3
    """Blocks of the encoder, and as many of the decoder."""
    n_head: int = 4
    """Attention heads per block."""
    n_embd: int = 128
    """Width of the residual stream."""
    head_size: int | None = None
    """Numbers per head; n_embd / n_head unless given."""
    n_hidden: int | None = None
    """Width inside the MLP; four times n_embd unless given."""
    block_size: int = 128
    """Longest source and longest target, in tokens."""
    vocab_size: int = 256
    """Vocabulary size of both."""
    relative_buckets: int = 32
    """Buckets of distances, each with a learned bias per head."""
    farthest: int = 128
    """Distance from which on all are alike."""
    activation: str = "relu"
    """Inside an MLP: relu, gelu, gelu_tanh or silu."""
    gated: bool = False
    """An MLP multiplies by a second linear layer, as in version 1.1 (with gelu_tanh)."""
    tied: bool = True
    """The head shares the matrix of the embeddings; in version 1.1 it does not."""
    scale_output: bool = True
    """What the head reads is divided by √n_embd; in version 1.1 it is not."""
    norm_eps: float = 1e-6
    """Added to the mean square before its root."""
    dropout: float = 0.1
    """Fraction set to 0 in training: of embeddings, attention weights, MLP activations and what each part adds."""
    label_smoothing: float = 0.0
    """Fraction of each target's mass spread over all tokens in training."""
    scheduled_sampling: float = 0.0
    """Fraction of decoder inputs that are the model's own guesses; grows from 0 to this by the last step."""
    target_start: str = "bos"
    """What a target begins with: <s> (bos), or <pad> as in published ones, whose sources end in </s>."""

    def __post_init__(self) -> None:
        check = Check("T5", self)
        check.at_least(1, *COUNTS)
        check.whole(1, LONGEST, "block_size")
        if self.head_size is None:
            check.divides("n_head", "n_embd", "heads must divide the width, unless head_size is given")
        check.at_least(4, "relative_buckets")
        check.require(
            self.farthest > self.relative_buckets // 2,
            *("farthest", "relative_buckets"),
            rule="must be more than half of the buckets",
        )
        check.one_of("activation", ("relu", "gelu", "gelu_tanh", "silu"))
        check.one_of("target_start", STARTS)
        check.fraction("dropout", "label_smoothing", "scheduled_sampling")
        check.positive("norm_eps")

    @property
    def per_head(self) -> int:
        """Numbers per head."""
        return self.n_embd // self.n_head if self.head_size is None else self.head_size


def spread(n: int) -> Init:
    """Weights with a standard deviation of 1 / √n."""
    return partial(normal, std=n**-0.5)


class Attention(Layer):
    """Attention of `hidden` to itself with a bias by distance, or to a memory without one."""

    def __init__(self, config: T5Config) -> None:
        C, H, D = config.n_embd, config.n_head, config.per_head
        self.heads = H
        self.dropout = config.dropout
        self.q = Linear(C, H * D, bias=False, init=spread(C * D))  # in place of a scale of the scores
        self.k = Linear(C, H * D, bias=False, init=spread(C))
        self.v = Linear(C, H * D, bias=False, init=spread(C))
        self.o = Linear(H * D, C, bias=False, init=spread(H * D))

    def forward(
        self, hidden: Tensor, memory: Tensor | None, bias: Tensor | None, causal: bool, mask: Array | None
    ) -> Tensor:
        """hidden (B, T, C), memory (B, S, C), bias (H, 2N - 1), mask (B, 1, 1, S) -> (B, T, C)"""
        source = hidden if memory is None else memory
        q, k, v = (
            x.reshape(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(0, 2, 1, 3)
            for x in (self.q(hidden), self.k(source), self.v(source))
        )  # (B, H, T, D), (B, H, S, D) twice
        p = self.dropout if self.training else 0.0
        options: dict[str, Any] = {"causal": causal, "mask": mask, "scale": 1.0, "dropout": p}
        options["key"] = next_key("dropout") if p else None
        mixed = attend(q, k, v, bias, **options)
        B, H, T, D = mixed.shape
        return self.o(mixed.transpose(0, 2, 1, 3).reshape(B, T, H * D))


class FeedForward(Layer):
    """wo(f(wi(x))), or with a gate wo(f(wi_0(x)) wi_1(x))"""

    def __init__(self, config: T5Config) -> None:
        C, inside = config.n_embd, config.inside
        if config.gated:
            self.wi_0 = Linear(C, inside, bias=False, init=spread(C))
            self.wi_1 = Linear(C, inside, bias=False, init=spread(C))
        else:
            self.wi = Linear(C, inside, bias=False, init=spread(C))
        self.wo = Linear(inside, C, bias=False, init=spread(inside))
        self.gated = config.gated
        self.activate = activation(config.activation)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C)"""
        inside = self.activate(self.wi_0(x)) * self.wi_1(x) if self.gated else self.activate(self.wi(x))
        return self.wo(self.dropout(inside))


class Part(Layer):
    """x + dropout(f(norm(x)))"""

    def __init__(self, config: T5Config, name: str, inner: Layer) -> None:
        setattr(self, name, inner)
        self.named = name
        self.layer_norm = RMSNorm(config.n_embd, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor, *besides: Any) -> Tensor:
        """hidden (B, T, C), and what f reads besides -> (B, T, C)"""
        return hidden + self.dropout(getattr(self, self.named)(self.layer_norm(hidden), *besides))


class Block(Layer):
    """Self-attention, in the decoder attention to the memory, and an MLP."""

    def __init__(self, config: T5Config, decodes: bool) -> None:
        self.decodes = decodes
        attentions = ("SelfAttention", "EncDecAttention") if decodes else ("SelfAttention",)
        parts = [Part(config, name, Attention(config)) for name in attentions]
        self.layer = [*parts, Part(config, "DenseReluDense", FeedForward(config))]

    def forward(self, hidden: Tensor, bias: Tensor, mask: Array | None, memory: Tensor | None) -> Tensor:
        """hidden (B, T, C), bias (H, 2N - 1), mask of the source, memory (B, S, C) -> (B, T, C)"""
        if not self.decodes:
            attend, feed_forward = self.layer
            return feed_forward(attend(hidden, None, bias, False, mask))
        assert memory is not None
        memory = memory.reshape(*memory.shape)  # sums the gradients of keys and values here, as in Seq2Seq
        attend, read, feed_forward = self.layer
        hidden = attend(hidden, None, bias, True, None)
        return feed_forward(read(hidden, memory, None, False, mask))


class Stack(Layer):
    """The encoder, or the decoder: its blocks, the bias that they share, and a norm."""

    def __init__(self, config: T5Config, decodes: bool) -> None:
        self.block = [Block(config, decodes) for _ in range(config.n_layer)]
        self.relative_attention_bias = DistanceBias(
            config.relative_buckets, config.n_head, config.block_size, farthest=config.farthest,
            causal=decodes, init=spread(config.n_embd),
        )  # fmt: skip
        self.final_layer_norm = RMSNorm(config.n_embd, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor, through: Through, mask: Array | None, memory: Tensor | None) -> Tensor:
        """hidden (B, T, C), mask of the source, memory (B, S, C) -> (B, T, C)"""
        bias = self.relative_attention_bias()
        hidden = self.dropout(hidden)
        for block in self.block:
            hidden = through(block, hidden, bias, mask, memory)
        return self.dropout(self.final_layer_norm(hidden))


class T5(EncoderDecoder):
    """A model that reads one sequence and writes another.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.T5Config(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> source, target = np.array([[5, 6, 7, 8]]), np.array([[1, 5]])
    >>> cr.models.T5(config)(source, source > 0, target).shape
    (1, 2, 10)
    """

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        C = config.n_embd
        self.scale = C**-0.5 if config.scale_output else 1.0
        small = partial(normal, std=STD / self.scale)  # the first loss is near ln V, scaled or not
        self.shared = Embedding(config.vocab_size, C, init=small if config.tied else normal)
        self.encoder, self.decoder_stack = Stack(config, False), Stack(config, True)
        if not config.tied:
            self.lm_head = Linear(C, config.vocab_size, bias=False, init=small)

    def encode(self, source: Array, source_mask: Array | None = None) -> Tensor:
        source = as_ids(source)
        check_length("T5", "encoder", source, self.config.block_size)
        return self.encoder(self.shared(source), self.through, visible(source_mask, source.shape), None)

    def decode(self, target: Array, memory: Tensor, source_mask: Array | None = None) -> Tensor:
        target, mask = as_ids(target), visible(source_mask, memory.shape[:2])
        check_length("T5", "decoder", target, self.config.block_size)
        return self.decoder_stack(self.shared(target), self.through, mask, memory)

    def head_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        head = self.shared if self.config.tied else self.lm_head
        if self.config.scale_output:
            hidden = hidden * constant(np.asarray(self.scale, hidden.dtype))
        return hidden, head.weight
