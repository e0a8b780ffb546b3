"""A model's forward pass over new tokens, as a list of instructions that `generate` runs with a cache.

A model writes the list once, beside its layers (`GPT.program`). Registers are named; each holds a row of numbers for
every new token. The C++ extension runs the whole list in one call, so Python's time per token does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from chainrule.autograd import Param
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.nn.embedding import Embedding
from chainrule.nn.linear import Linear
from chainrule.nn.norm import LayerNorm, RMSNorm


@dataclass(frozen=True)
class Embed:
    """out = scale · table[token], plus positions[position] if there are rows of positions"""

    out: str
    table: Embedding
    positions: Array | None = None
    scale: float = 1.0


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
    activation: str | None = None  # relu, gelu, gelu_tanh or silu
    add: bool = False

    def __post_init__(self) -> None:
        check_linear(self.layers)


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
class Look:
    """out = attention of the queries q over the source, whose keys and values are these layers of its memory

    They are computed once, when the source is read; sequences that share a source share them. Only the extension knows
    this one: elsewhere the layers of an encoder-decoder are called.
    """

    out: str
    q: str
    heads: int
    layers: tuple[Linear, Linear]  # of keys, of values

    def __post_init__(self) -> None:
        check_linear(self.layers)


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
    """logits = x tableᵀ, plus bias (1, V) if given: the end of a program"""

    x: str
    table: Embedding | Linear
    bias: Param | None = None


Instruction: TypeAlias = Embed | Norm | Project | Attend | Gate | Last | Head


def check_linear(layers: Sequence[Linear]) -> None:
    for layer in layers:
        if not isinstance(layer, Linear):
            raise ConfigError(
                f"program: {type(layer).__name__} (must be Linear; merge an adapter and put its base back)"
            )


def joint_bias(layers: Sequence[Linear]) -> Array | None:
    """The biases side by side, 0 for a layer without one; None if no layer has one"""
    if all(layer.bias is None for layer in layers):
        return None
    return np.concatenate(
        [
            np.zeros(len(layer.weight), np.float32) if layer.bias is None else layer.bias.array
            for layer in layers
        ]
    )
