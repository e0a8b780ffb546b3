"""GPT: a decoder-only transformer, in one file.

    hidden = wte[ids] + wpe[0..T-1]
    hidden = hidden + attention(layernorm(hidden))              L times: pre-norm, so that the residual stream
    hidden = hidden + mlp(layernorm(hidden))                    runs from the embedding to the head untouched
    logits = layernorm(hidden) wteᵀ                             the embedding's matrix, or one of its own, lm_head

Weights carry the names of Hugging Face's GPT-2 (`h.0.attn.c_attn.weight`); matrices are stored (out, in).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.models.language_model import TransformerLM
from chainrule.models.model import Config
from chainrule.nn import Dropout, Embedding, KeyValuePrefix, Layer, LayerNorm, Linear, SoftPrompt
from chainrule.nn.activation import Activation
from chainrule.nn.apart import Apart
from chainrule.nn.init import normal
from chainrule.random import next_key
from chainrule.validate import Check

ACTIVATIONS: dict[str, Activation] = {"gelu": ops.gelu, "gelu_tanh": ops.gelu_tanh, "relu": ops.relu}
STD = 0.02  # of the initial weights: small, so that the first logits are near 0 and the first loss near ln V


@dataclass(frozen=True)
class GPTConfig(Config):
    """The size of a GPT.

    >>> import chainrule as cr
    >>> cr.models.GPTConfig(n_layer=2, n_head=2, n_embd=32, vocab_size=65).n_params
    31648
    """

    n_layer: int = 4
    """Blocks."""
    n_head: int = 4
    """Attention heads per block."""
    n_embd: int = 128
    """Width of the residual stream; a multiple of the heads."""
    block_size: int = 128
    """Longest context, in tokens."""
    vocab_size: int = 256
    """Vocabulary size."""
    dropout: float = 0.0
    """Fraction of attention weights and of MLP activations set to 0 in training."""
    bias: bool = True
    """Biases in linear layers and norms."""
    activation: str = "gelu"
    """Between the two layers of an MLP: gelu, gelu_tanh (the approximation of GPT-2) or relu (OPT)."""
    norm_eps: float = 1e-5
    """Added to the variance before its root."""
    tied: bool = True
    """The head shares the embedding's matrix."""
    n_hidden: int | None = None
    """Width inside the MLP; four times n_embd unless given."""

    def __post_init__(self) -> None:
        check = Check("GPT", self)
        check.at_least(1, "n_layer", "n_head", "n_embd", "block_size", "vocab_size", "n_hidden")
        check.divides("n_head", "n_embd", "heads must divide the width")
        check.one_of("activation", ACTIVATIONS)
        check.fraction("dropout")
        check.positive("norm_eps")


class CausalSelfAttention(Layer):
    """Each position looks at itself and at those before it."""

    def __init__(self, config: GPTConfig) -> None:
        C = config.n_embd
        self.n_head = config.n_head
        self.dropout = config.dropout
        self.prefix: KeyValuePrefix | None = None
        self.c_attn = Linear(C, 3 * C, bias=config.bias, init=partial(normal, std=STD))
        self.c_proj = Linear(C, C, bias=config.bias, init=partial(normal, std=residual_std(config)))

    def forward(self, hidden: Tensor, texts: Apart | None = None) -> Tensor:
        """hidden (B, T, C) -> (B, T, C); with `texts` each sees itself alone"""
        qkv = self.c_attn(hidden)  # (B, T, 3C)
        drop = self.dropout if self.training else 0.0
        key = next_key("dropout") if drop else None
        if self.prefix is None and texts is None:
            return self.c_proj(ops.packed_attention(qkv, heads=self.n_head, dropout=drop, key=key))
        B, T, C = hidden.shape
        parts = (qkv[..., start : start + C] for start in (0, C, 2 * C))
        q, k, v = (x.reshape(B, T, self.n_head, -1).transpose(0, 2, 1, 3) for x in parts)  # (B, H, T, D)
        mask = None if texts is None else texts.mask
        if self.prefix is not None:
            (k, v), mask = self.prefix(k, v), self.prefix.visible(mask)
        mixed = ops.attention(q, k, v, causal=True, mask=mask, dropout=drop, key=key)
        return self.c_proj(mixed.transpose(0, 2, 1, 3).reshape(B, T, C))


class MLP(Layer):
    """Each position on its own: wider (four times, usually), an activation, and back."""

    def __init__(self, config: GPTConfig) -> None:
        C, F = config.n_embd, config.inside
        self.c_fc = Linear(C, F, bias=config.bias, init=partial(normal, std=STD))
        self.c_proj = Linear(F, C, bias=config.bias, init=partial(normal, std=residual_std(config)))
        self.activation = config.activation
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, T, C)"""
        return self.c_proj(self.dropout(ACTIVATIONS[self.activation](self.c_fc(hidden))))


class Block(Layer):
    def __init__(self, config: GPTConfig) -> None:
        self.ln_1 = LayerNorm(config.n_embd, eps=config.norm_eps, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, eps=config.norm_eps, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, hidden: Tensor, texts: Apart | None = None) -> Tensor:
        """hidden (B, T, C) -> (B, T, C)"""
        hidden = hidden + self.attn(self.ln_1(hidden), texts)
        return hidden + self.mlp(self.ln_2(hidden))


class GPT(TransformerLM):
    """A language model: for each position, scores of what comes next.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> cr.models.GPT(config)(np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.wte: Embedding | SoftPrompt = Embedding(
            config.vocab_size, config.n_embd, init=partial(normal, std=STD)
        )
        self.wpe = Embedding(config.block_size, config.n_embd, init=partial(normal, std=STD))
        self.h = [Block(config) for _ in range(config.n_layer)]
        self.ln_f = LayerNorm(config.n_embd, eps=config.norm_eps, bias=config.bias)
        if not config.tied:
            init = partial(normal, std=STD)
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, init=init)

    @property
    def embedding(self) -> Embedding | SoftPrompt:
        return self.wte

    @property
    def context(self) -> int:
        return super().context - self.prefix_length

    @property
    def prefix_length(self) -> int:  # type: ignore[override]
        prefix: KeyValuePrefix | None = getattr(self.h[0].attn, "prefix", None)
        return 0 if prefix is None else prefix.length

    def hidden(self, ids: Array, segments: Array | Apart | None = None) -> Tensor:
        """ids (B, T) -> what the head reads (B, T, C); texts in a row are apart by their segments (B, T)"""
        hidden, texts = self.wte(self.checked(ids)), self.texts_of(segments)
        first = self.prefix_length
        positions = constant(first + np.arange(hidden.shape[1])) if texts is None else texts.positions
        hidden = hidden + self.wpe(positions)  # (B, T, C) + (T, C), or (B, T, C) with texts apart
        for block in self.h:
            hidden = self.through(block, hidden, *([] if texts is None else [texts]))
        return self.ln_f(self.of_tokens(hidden))


def residual_std(config: GPTConfig) -> float:
    """2L projections add to the residual stream: scaled by 1/√(2L) the sum stays as wide as one of them."""
    return STD / (2 * config.n_layer) ** 0.5
