"""Llama: a decoder-only transformer with rotary positions, RMS norm, gated MLP and grouped-query attention.

    hidden = embed_tokens[ids]                                  no positions here: attention turns its queries and keys
    hidden = hidden + attention(rmsnorm(hidden))                L times, pre-norm
    hidden = hidden + swiglu_mlp(rmsnorm(hidden))
    logits = rmsnorm(hidden) embed_tokensᵀ                      or a matrix of its own, lm_head

Weights carry the names of Hugging Face's Llama (`layers.0.self_attn.q_proj.weight`); matrices are stored (out, in). No
layer has a bias, unless attention is given some, as in Qwen 2. Models that differ in a detail are its variants.
(Touvron et al. 2023; Ainslie et al. 2023 for the shared key and value heads)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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
    RotaryAttention,
    SoftPrompt,
    frequencies,
    rope_scaling,
)
from chainrule.nn.apart import Apart
from chainrule.nn.init import normal
from chainrule.validate import Check

COUNTS = ("n_layer", "n_head", "n_kv_head", "n_embd", "n_hidden", "block_size", "vocab_size", "head_dim")
BIASES = ("none", "qkv", "all")
STD = 0.02  # of the initial weights
init = partial(normal, std=STD)


@dataclass(frozen=True)
class Variant:
    """In what a model differs from Llama."""

    qk_norm: bool = False
    """Each head of queries and keys is RMS-normalized before it turns."""
    gate: str = "silu"
    """Activation of the gate in the MLP."""
    scaled_embedding: bool = False
    """The embedding is multiplied by √C."""
    norm_offset: float = 0.0
    """Added to the weights of the norms, which then begin as 1."""
    unturned_every: int | None = None
    """One layer in so many does not turn its queries and keys."""


VARIANTS = {
    "llama": Variant(),
    "phi3": Variant(),  # the same model; its files store q, k, v in one matrix, and gate and up in another
    "qwen3": Variant(qk_norm=True),
    "gemma": Variant(gate="gelu_tanh", scaled_embedding=True, norm_offset=1.0),
    "smollm3": Variant(unturned_every=4),
}


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
    variant: str = "llama"
    """What differs from llama: qwen3 normalizes queries and keys, gemma gates by GELU and scales its embedding, smollm3
    turns nothing in every fourth layer, phi3 has other files only."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rope_scaling", rope_scaling(self.rope_scaling))  # a file has its fields
        check = Check("Llama", self)
        check.at_least(1, *COUNTS)
        if self.head_dim is None:
            check.divides("n_head", "n_embd", "heads must divide the width, unless head_dim is given")
        check.one_of("attention_bias", BIASES)
        check.one_of("variant", VARIANTS)
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

    @property
    def differs(self) -> Variant:
        """In what it differs from Llama."""
        return VARIANTS[self.variant]


class Block(Layer):
    def __init__(self, config: LlamaConfig, number: int = 0) -> None:
        C, eps, differs = config.n_embd, config.norm_eps, config.differs
        norm = partial(RMSNorm, C, eps=eps, offset=differs.norm_offset)
        turned = differs.unturned_every is None or (number + 1) % differs.unturned_every
        self.input_layernorm = norm()
        self.self_attn = RotaryAttention(
            C,
            config.n_head,
            config.n_kv_head,
            config.head_size,
            config.frequencies if turned else None,
            bias=config.biases,
            qk_norm=eps if differs.qk_norm else None,
            init=init,
        )
        self.post_attention_layernorm = norm()
        self.mlp = GatedFeedForward(C, config.n_hidden, activation=differs.gate, init=init)

    def forward(self, hidden: Tensor, texts: Apart | None = None) -> Tensor:
        """hidden (B, T, C) -> (B, T, C)"""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), texts)
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
        self.embed_tokens: Embedding | SoftPrompt = Embedding(config.vocab_size, config.n_embd, init=init)
        self.layers = [Block(config, number) for number in range(config.n_layer)]
        self.norm = RMSNorm(config.n_embd, eps=config.norm_eps, offset=config.differs.norm_offset)
        if not config.tied:
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, init=init)

    @property
    def embedding(self) -> Embedding | SoftPrompt:
        return self.embed_tokens

    def hidden(self, ids: Array, segments: Array | Apart | None = None) -> Tensor:
        """ids (B, T) -> what the head reads (B, T, C); texts in a row are apart by their segments (B, T)"""
        hidden = self.embed_tokens(self.checked(ids))  # (B, T, C)
        if self.config.differs.scaled_embedding:
            hidden = hidden * self.config.n_embd**0.5
        texts = self.texts_of(segments)
        for block in self.layers:
            hidden = self.through(block, hidden, *([] if texts is None else [texts]))
        return self.norm(self.of_tokens(hidden))
