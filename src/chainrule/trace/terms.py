"""What a value is while a graph is lowered: rows in a register, or rows still to be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chainrule.autograd import Param
from chainrule.autograd.types import Array
from chainrule.errors import GraphError


class Unsupported(GraphError):
    """There is no instruction for this: the interpreter runs it."""


@dataclass(frozen=True, eq=False)
class Weight:
    """Matrices (out, in), one above the other. Parameters keep their identity, so that a tied one is packed once."""

    parts: tuple[Param | Array, ...]

    @property
    def key(self) -> tuple[int, ...]:
        return tuple(id(part) for part in self.parts)

    def array(self) -> Array:
        return np.concatenate([numbers(part) for part in self.parts])

    @property
    def shape(self) -> tuple[int, int]:
        return sum(len(part) for part in self.parts), self.parts[0].shape[1]


@dataclass(frozen=True, eq=False)
class Register:
    """Rows of `width` numbers, written once."""

    width: int


@dataclass(frozen=True)
class Instruction:
    """A step of the extension's `Program`: what it writes and reads, and the rest of its arguments."""

    name: str
    out: Register
    reads: tuple[Register, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)
    base: Register | None = None
    """What a linear layer is added to."""

    @property
    def needed(self) -> tuple[Register, ...]:
        return self.reads if self.base is None else (*self.reads, self.base)


@dataclass(frozen=True, eq=False)
class Linear:
    """f(x Wᵀ + b), not computed yet"""

    x: Register
    weight: Weight
    bias: Array | None
    activation: str | None = None


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of registers and linear layers, not computed yet: the terms are added when it is read."""

    terms: tuple[Register | Linear, ...]
    width: int


@dataclass(frozen=True, eq=False)
class Embedded:
    """scale · table[token], plus rows by position; the rows of a prompt come before those of the tokens"""

    table: Weight
    scale: float = 1.0
    positions: Array | None = None
    prompt: Array | None = None


@dataclass(frozen=True, eq=False)
class SourceRows:
    """Rows of the source: its memory, or with a weight keys or values of it"""

    weight: Weight | None = None
    bias: Array | None = None


@dataclass(frozen=True, eq=False)
class Heads:
    """Rows cut into heads (B, T, H, D), or transposed (B, H, T, D), perhaps normalized, then turned by position, then
    with others before them"""

    rows: Any
    heads: int
    transposed: bool = False
    norm: tuple[Array, float] | None = None  # gains and ε
    frequency: Array | None = None
    prefix: Array | None = None  # (H, P, D)

    @property
    def plain(self) -> bool:
        """The rows themselves: neither normalized nor turned, and none before them."""
        return self.norm is None and self.frequency is None and self.prefix is None


def fits(step: Instruction) -> bool:
    """Whether the widths of what a step reads and writes are those of its weights, as the extension demands."""
    get, out = step.arguments.get, step.out.width
    read = step.reads[0].width if step.reads else 0
    weight: tuple[int, ...] = () if get("weight") is None else step.arguments["weight"].shape
    if step.base is not None and step.base.width != out:
        return False
    match step.name:
        case "embedding":
            rows = [x for x in (get("positions"), get("prompt")) if x is not None]
            return step.arguments["table"].shape[1] == out and all(x.shape[1] == out for x in rows)
        case "layernorm" | "rmsnorm":
            return read == out and all(
                _is_row(step.arguments[x], out) for x in ("gamma", "beta") if x in step.arguments
            )
        case "linear":
            return weight == (out, read) and (get("bias") is None or _is_row(get("bias"), out))
        case "attention":
            heads, kv_heads, frequency = (step.arguments[x] for x in ("heads", "kv_heads", "frequency"))
            size = out // heads
            even = frequency is None or frequency.shape == (size / 2,)
            gains = all(_is_row(gain, size) for gain, _ in step.arguments.get("norms") or ())
            whole = out % heads == heads % kv_heads == 0 and read == (heads + 2 * kv_heads) * size
            bias = get("bias") is None or len(step.arguments["bias"]) == heads
            before = all(x.shape[::2] == (kv_heads, size) for x in get("prefix") or ())
            return whole and even and gains and bias and before
        case "cross_attention":
            return read == out and out % step.arguments["heads"] == 0 and weight[0] == 2 * out
        case "swiglu" | "gated":
            return read == 2 * out
        case "recurrent":
            return weight == (read, out)
    return read == out


def _is_row(x: Any, width: int) -> bool:
    return isinstance(x, np.ndarray) and x.shape == (width,)


def stacked(linears: Sequence[Linear]) -> Linear:
    """One matmul whose outputs stand side by side."""
    weight = Weight(tuple(part for linear in linears for part in linear.weight.parts))
    bias = joined([p.bias for p in linears], [p.weight.shape[0] for p in linears])
    return Linear(linears[0].x, weight, bias)


def joined(biases: Sequence[Array | None], widths: Sequence[int]) -> Array | None:
    """Biases side by side, 0 for a layer without one; None if no layer has one"""
    if all(bias is None for bias in biases):
        return None
    return np.concatenate(
        [np.zeros(width, np.float32) if b is None else b for b, width in zip(biases, widths, strict=True)]
    )


def scaled(linear: Linear, factor: float) -> Linear:
    if factor == 1:
        return linear
    bias = None if linear.bias is None else linear.bias * np.float32(factor)
    return replace(linear, weight=Weight((linear.weight.array() * np.float32(factor),)), bias=bias)


def cut(linear: Linear, columns: slice) -> Linear:
    """Some of the outputs."""
    bias = None if linear.bias is None else linear.bias[columns]
    return replace(linear, weight=Weight((linear.weight.array()[columns],)), bias=bias)


def numbers(x: Param | Array) -> Array:
    return x.array if isinstance(x, Param) else x


def padded(linear: Linear, place: int, sums: Sequence[Sum]) -> Linear:
    """A matmul that adds nothing to the columns of others."""
    before = sum(each.width for each in sums[:place])
    after = sum(each.width for each in sums[place + 1 :])
    W = np.pad(linear.weight.array(), [(before, after), (0, 0)])
    bias = None if linear.bias is None else np.pad(linear.bias, (before, after))
    return Linear(linear.x, Weight((W,)), bias)
