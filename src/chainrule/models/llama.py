"""Llama: a decoder-only transformer with rotary positions, RMS norm, gated MLP and grouped-query attention.

    hidden = embed_tokens[ids]                                  no positions here: attention turns its queries and keys
    hidden = hidden + attention(rmsnorm(hidden))                L times, pre-norm
    hidden = hidden + swiglu_mlp(rmsnorm(hidden))
    logits = rmsnorm(hidden) embed_tokensᵀ                      or a matrix of its own, lm_head

Weights carry the names of Hugging Face's Llama (`layers.0.self_attn.q_proj.weight`); matrices are stored (out, in). No
layer has a bias, unless attention is given some, as in Qwen 2.
(Touvron et al. 2023; Ainslie et al. 2023 for the shared key and value heads)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.language_model import TransformerLM
from chainrule.models.model import Config
from chainrule.nn import (
    Embedding,
    GatedFeedForward,
    Layer,
    Linear,
    RMSNorm,
    RopeScaling,
    frequencies,
    rope_scaling,
)
from chainrule.nn.init import normal
from chainrule.validate import Check

COUNTS = ("n_layer", "n_head", "n_kv_head", "n_embd", "n_hidden", "block_size", "vocab_size", "head_dim")
BIASES = ("none", "qkv", "all")
STD = 0.02  # of the initial weights
init = partial(normal, std=STD)


@dataclass(frozen=True)
class LlamaConfig(Config):
    """The size of a Llama.

    >>> import chainrule as cr
    >>> cr.models.LlamaConfig(n_layer=30, n_head=9, n_kv_head=3, n_embd=576, n_hidden=1536, vocab_size=49152).n_params
    134515008
    """

    n_layer: int = 4
    """Blocks."""
    n_head: int = 4
    """Query heads per block."""
    n_kv_head: int = 2
    """Key and value heads per block, each shared by a group of query heads; divides them."""
    n_embd: int = 128
    """Width of the residual stream; a multiple of the heads, unless head_dim is given."""
    n_hidden: int = 352
    """Width inside the MLP."""
    block_size: int = 128
    """Longest context, in tokens."""
    vocab_size: int = 256
    """Vocabulary size."""
    rope_base: float = 10000.0
    """The slowest pair of a head turns once in about 2π times this many tokens."""
    norm_eps: float = 1e-5
    """Added to the mean square before its root."""
    tied: bool = True
    """The head shares the embedding's matrix."""
    head_dim: int | None = None
    """Numbers per head; n_embd / n_head unless given."""
    rope_scaling: RopeScaling | None = None
    """How the frequencies of rotary positions are slowed down, for a longer context than the first one."""
    attention_bias: str = "none"
    """Biases in attention: none, those of queries, keys and values (qkv, as in Qwen 2), or the output's too (all)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rope_scaling", rope_scaling(self.rope_scaling))  # a file has its fields
        check = Check("Llama", self)
        check.at_least(1, *COUNTS)
        if self.head_dim is None:
            check.divides("n_head", "n_embd", "heads must divide the width, unless head_dim is given")
        check.one_of("attention_bias", BIASES)
        check.divides("n_kv_head", "n_head", "must divide")
        if self.head_size % 2:
            raise ConfigError(
                f"Llama: a head of {self.head_size} numbers (must be even: rotary positions turn pairs)"
            )
        check.positive("rope_base", "norm_eps")

    @property
    def head_size(self) -> int:
        """Numbers per head."""
        return self.n_embd // self.n_head if self.head_dim is None else self.head_dim

    @property
    def frequencies(self) -> Array:
        """Radians per position by which each pair of a head is turned, (D/2,)."""
        plain = frequencies(self.head_size, self.rope_base)
        return plain if self.rope_scaling is None else self.rope_scaling.slowed(plain)

    @property
    def biases(self) -> tuple[bool, bool]:
        """If queries, keys and values have biases, and if the output of attention has one."""
        return self.attention_bias != "none", self.attention_bias == "all"


class SelfAttention(Layer):
    """Causal attention whose queries and keys are turned by their positions."""

    def __init__(self, config: LlamaConfig) -> None:
        C, D, (inner, outer) = config.n_embd, config.head_size, config.biases
        self.size = D
        self.frequencies = config.frequencies
        self.q_proj = Linear(C, config.n_head * D, bias=inner, init=init)
        self.k_proj = Linear(C, config.n_kv_head * D, bias=inner, init=init)
        self.v_proj = Linear(C, config.n_kv_head * D, bias=inner, init=init)
        self.o_proj = Linear(config.n_head * D, C, bias=outer, init=init)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, T, C)"""
        B, T, _ = hidden.shape
        q, k, v = (self._split(proj(hidden)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        positions = np.arange(T)
        q, k = (ops.rotary(x, positions=positions, frequency=self.frequencies) for x in (q, k))
        mixed = ops.attention(q, k, v, causal=True)  # (B, H, T, D)
        return self.o_proj(mixed.transpose(0, 2, 1, 3).reshape(B, T, -1))

    def _split(self, x: Tensor) -> Tensor:
        B, T, width = x.shape
        return x.reshape(B, T, width // self.size, self.size).transpose(0, 2, 1, 3)  # (B, H or Hk, T, D)


class Block(Layer):
    def __init__(self, config: LlamaConfig) -> None:
        self.input_layernorm = RMSNorm(config.n_embd, eps=config.norm_eps)
        self.self_attn = SelfAttention(config)
        self.post_attention_layernorm = RMSNorm(config.n_embd, eps=config.norm_eps)
        self.mlp = GatedFeedForward(config.n_embd, config.n_hidden, init=init)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (B, T, C) -> (B, T, C)"""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden))
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Llama(TransformerLM):
    """A language model: for each position, scores of what comes next.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.LlamaConfig(n_layer=1, n_head=4, n_kv_head=2, n_embd=16, n_hidden=40, vocab_size=10)
    >>> cr.models.Llama(config)(np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embed_tokens = Embedding(config.vocab_size, config.n_embd, init=init)
        self.layers = [Block(config) for _ in range(config.n_layer)]
        self.norm = RMSNorm(config.n_embd, eps=config.norm_eps)
        if not config.tied:
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, init=init)

    @property
    def head(self) -> Embedding | Linear:
        return self.embed_tokens if self.config.tied else self.lm_head

    def hidden(self, ids: Array) -> Tensor:
        """ids (B, T) -> what the head reads (B, T, C)"""
        hidden = self.embed_tokens(self.checked(ids))  # (B, T, C)
        for block in self.layers:
            hidden = self.through(block, hidden)
        return self.norm(hidden)
