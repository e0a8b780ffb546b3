"""A model's forward pass over new tokens, as a list of instructions that `generate.Decoder` runs with a cache.

A model writes the list once, beside its layers (`GPT.program`). Registers are named; each holds a row of numbers for
every new token. The C++ extension runs the whole list in one call, so Python's time per token does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.nn.embedding import Embedding
from chainrule.nn.linear import Linear
from chainrule.nn.norm import LayerNorm, RMSNorm


@dataclass(frozen=True)
class Embed:
    """out = table[token], plus positions[position] if given"""

    out: str
    table: Embedding
    positions: Embedding | None = None


@dataclass(frozen=True)
class Norm:
    """out = layer(x)"""

    out: str
    x: str
    layer: LayerNorm | RMSNorm


@dataclass(frozen=True)
class Project:
    """out = f(layer(x)), or with `add` out + f(layer(x)); several layers stand side by side in `out`"""

    out: str
    x: str
    layers: tuple[Linear, ...]
    activation: str | None = None  # gelu or gelu_tanh
    add: bool = False

    def __post_init__(self) -> None:
        for layer in self.layers:
            if not isinstance(layer, Linear):
                raise ConfigError(
                    f"program: {type(layer).__name__} (must be Linear; merge an adapter and put its base back)"
                )

    def bias(self) -> Array | None:
        """The biases side by side, 0 for a layer without one; None if no layer has one"""
        if all(layer.bias is None for layer in self.layers):
            return None
        return np.concatenate(
            [
                np.zeros(len(layer.weight), np.float32) if layer.bias is None else layer.bias.array
                for layer in self.layers
            ]
        )


@dataclass(frozen=True)
class Attend:
    """qkv: queries, keys, values side by side. Keys and values join the cache; out = attention over all of it

    With `rotary`, the radians per position of each pair, queries and keys are turned first.
    """

    out: str
    qkv: str
    heads: int
    kv_heads: int
    rotary: Array | None = None


@dataclass(frozen=True)
class Gate:
    """out = silu(first half of x) · second half"""

    out: str
    x: str


@dataclass(frozen=True)
class Last:
    """out = x of each sequence's last new token; the instructions that follow see only those"""

    out: str
    x: str


@dataclass(frozen=True)
class Head:
    """logits = x tableᵀ, the end of a program"""

    x: str
    table: Embedding | Linear


Instruction: TypeAlias = Embed | Norm | Project | Attend | Gate | Last | Head
