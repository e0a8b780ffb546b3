"""GPT-NeoX: a GPT whose positions are rotations, and whose attention and MLP read the same hidden rows side by side.

    hidden = embed_in[ids]                                                          no positions here
    hidden = hidden + attention(layernorm(hidden)) + mlp(layernorm(hidden))         L times, two norms, one sum
    logits = layernorm(hidden) lm_headᵀ

Only a part of each head turns: the frequencies of its other pairs are 0.
(Black et al. 2022; Pythia, Biderman et al. 2023)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.models.gpt import ACTIVATIONS
from chainrule.models.language_model import TransformerLM
from chainrule.models.model import Config
from chainrule.nn import (
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    Linear,
    RotaryAttention,
    SoftPrompt,
    frequencies,
)
from chainrule.nn.apart import Apart
from chainrule.nn.init import normal
from chainrule.validate import Check

STD = 0.02  # of the initial weights
init = partial(normal, std=STD)


@dataclass(frozen=True)
class NeoXConfig(Config):
    """The size of a GPT-NeoX.

    >>> import chainrule as cr
    >>> cr.models.NeoXConfig(n_layer=6, n_head=8, n_embd=512, vocab_size=50304).n_params  # Pythia 70M
    70426624
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
    n_hidden: int | None = None
    """Width inside the MLP; four times n_embd unless given."""
    activation: str = "gelu"
    """Between the two layers of an MLP: gelu, gelu_tanh or relu."""
    norm_eps: float = 1e-5
    """Added to the variance before its root."""
    tied: bool = False
    """The head shares the embedding's matrix."""
    rotary: float = 0.25
    """Part of each head that turns by its position."""
    rope_base: float = 10000.0
    """The slowest of the pairs that turn does so once in about 2π times this many tokens."""
    parallel: bool = True
    """Attention and MLP read the same rows; otherwise the MLP reads what attention has added to."""

    def __post_init__(self) -> None:
        check = Check("NeoX", self)
        check.at_least(1, "n_layer", "n_head", "n_embd", "block_size", "vocab_size", "n_hidden")
        check.divides("n_head", "n_embd", "heads must divide the width")
        check.one_of("activation", ACTIVATIONS)
        check.between(0, 1, "rotary")
        rule = f"a head of {self.head_size} numbers must be even: rotary positions turn pairs"
        check.require(self.head_size % 2 == 0, "n_embd", "n_head", rule=rule)
        check.positive("norm_eps", "rope_base")

    @property
    def head_size(self) -> int:
        """Numbers per head."""
        return self.n_embd // self.n_head

    @property
    def turned(self) -> int:
        """Numbers of a head that turn, in pairs: at least one pair unless `rotary` is 0."""
        return max(2, 2 * int(self.head_size * self.rotary / 2)) if self.rotary else 0

    @property
    def frequencies(self) -> Array | None:
        """Radians per position by which each pair of a head is turned, (D/2,); None if no pair turns."""
        if not self.turned:
            return None
        turned = frequencies(self.turned, self.rope_base)
        return np.pad(turned, (0, self.head_size // 2 - len(turned)))


class Block(Layer):
    def __init__(self, config: NeoXConfig) -> None:
        C, H, D, eps = config.n_embd, config.n_head, config.head_size, config.norm_eps
        self.parallel = config.parallel
        self.input_layernorm = LayerNorm(C, eps=eps)
        self.attention = RotaryAttention(C, H, H, D, config.frequencies, bias=(True, True), init=init)
        self.post_attention_layernorm = LayerNorm(C, eps=eps)
        self.mlp = FeedForward(C, config.inside, activation=config.activation, init=init)

    def forward(self, hidden: Tensor, texts: Apart | None = None) -> Tensor:
        """hidden (B, T, C) -> (B, T, C)"""
        attended = hidden + self.attention(self.input_layernorm(hidden), texts)
        return attended + self.mlp(self.post_attention_layernorm(hidden if self.parallel else attended))


class NeoX(TransformerLM):
    """A language model: for each position, scores of what comes next.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.NeoXConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> cr.models.NeoX(config)(np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: NeoXConfig) -> None:
        super().__init__(config)
        self.embed_in: Embedding | SoftPrompt = Embedding(config.vocab_size, config.n_embd, init=init)
        self.layers = [Block(config) for _ in range(config.n_layer)]
        self.final_layer_norm = LayerNorm(config.n_embd, eps=config.norm_eps)
        if not config.tied:
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, init=init)

    @property
    def embedding(self) -> Embedding | SoftPrompt:
        return self.embed_in

    def hidden(self, ids: Array, segments: Array | Apart | None = None) -> Tensor:
        """ids (B, T) -> what the head reads (B, T, C); texts in a row are apart by their segments (B, T)"""
        hidden = self.embed_in(self.checked(ids))  # (B, T, C)
        texts = self.texts_of(segments)
        for block in self.layers:
            hidden = self.through(block, hidden, *([] if texts is None else [texts]))
        return self.final_layer_norm(self.of_tokens(hidden))
