"""A program in the C++ extension: weights packed once, then one call for all instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array
from chainrule.generate.weights import FORMATS, Floats, Words, pack, pad
from chainrule.nn import Embedding, LayerNorm, Linear, RMSNorm
from chainrule.nn.program import Attend, Embed, Gate, Head, Instruction, Last, Look, Norm, Project, joint_bias

ACTIVATIONS = (None, "gelu", "gelu_tanh", "relu", "silu")  # as in native/decode/decode.hpp


def runs(dtype: npt.DTypeLike) -> bool:
    """Whether the extension is there, wanted, and made for weights of this type."""
    return mode.backend == "native" and native.available() and dtype == np.float32


def compiled(program: Sequence[Instruction | Look], weights: str, batch: int, context: int) -> Any:
    """A `Program` of the extension with its own copy of the weights, in the format `weights`."""
    return Compiler(program, weights, context).open(batch)


class Compiler:
    """A program with a copy of its weights, packed: calls that make a `Program` of the extension, or several."""

    def __init__(self, program: Sequence[Instruction | Look], weights: str, context: int) -> None:
        self.weights = weights
        self.code = FORMATS.index(weights)
        self.context = context
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.registers: dict[str, tuple[int, int]] = {}  # number and width
        self.packed: dict[tuple[int, ...], Words] = {}  # by parameters: a tied matrix is packed once
        self.turns: dict[bytes, tuple[Floats, Floats]] = {}  # by frequencies, which all layers share
        for step in program:
            self.add(step)

    def open(self, batch: int) -> Any:
        """A `Program` with caches of its own for `batch` sequences; all share the weights."""
        program = native.kernels().Program(batch, self.context)
        for name, arguments in self.calls:
            getattr(program, name)(*arguments)
        return program

    def add(self, step: Instruction | Look) -> None:
        match step:
            case Embed(out, table, positions, scale):
                V, C = table.weight.shape
                rows = None if positions is None else positions.astype(np.float32)
                self.call("embed", self.new(out, C), self.words(table), self.code, V, scale, rows)
            case Norm(out, x, layer):
                self.norm(out, x, layer)
            case Project(out, x, layers, activation, add):
                target = self.new(out, sum(layer.weight.shape[0] for layer in layers))
                source, _ = self.registers[x]
                f, bias = ACTIVATIONS.index(activation), padded(joint_bias(layers))
                self.call("linear", target, source, self.words(*layers), self.code, bias, f, add)
            case Attend(out, qkv, heads, kv_heads, rotary):
                source, width = self.registers[qkv]
                D = width // (heads + 2 * kv_heads)
                cos, sin = (None, None) if rotary is None else self.angles(rotary)
                self.call("attention", self.new(out, heads * D), source, heads, kv_heads, cos, sin)
            case Look(out, q, heads, layers):
                source, width = self.registers[q]
                words, bias = self.words(*layers), padded(joint_bias(layers))
                memory = layers[0].weight.shape[1]
                self.call("look", self.new(out, width), source, heads, memory, words, self.code, bias)
            case Gate(out, x):
                source, width = self.registers[x]
                self.call("swiglu", self.new(out, width // 2), source)
            case Last(out, x):
                source, width = self.registers[x]
                self.call("last", self.new(out, width), source)
            case Head(x, table, offset):
                source, _ = self.registers[x]
                target = self.new("logits", table.weight.shape[0])
                bias = None if offset is None else padded(offset.array.reshape(-1))
                self.call("linear", target, source, self.words(table), self.code, bias, 0, False)

    def norm(self, out: str, x: str, layer: LayerNorm | RMSNorm) -> None:
        source, C = self.registers[x]
        gamma = layer.weight.array.astype(np.float32)
        if isinstance(layer, RMSNorm):
            self.call("rmsnorm", self.new(out, C), source, gamma, layer.eps)
        else:
            beta = np.zeros_like(gamma) if layer.bias is None else layer.bias.array.astype(np.float32)
            self.call("layernorm", self.new(out, C), source, gamma, beta, layer.eps)

    def call(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, arguments))

    def new(self, name: str, width: int) -> int:
        """The number of a register, which is made when it is first written."""
        if name not in self.registers:
            self.call("buffer", width)
            self.registers[name] = len(self.registers), width
        return self.registers[name][0]

    def words(self, *layers: Linear | Embedding) -> Words:
        """The matrices of some layers, one above the other, packed."""
        key = tuple(id(layer.weight) for layer in layers)
        if key not in self.packed:
            stacked = np.concatenate([layer.weight.array for layer in layers])
            loose = pack(stacked, self.weights)
            self.packed[key] = native.empty(loose.shape, np.int32)  # aligned, in huge pages
            self.packed[key][...] = loose
        return self.packed[key]

    def angles(self, frequency: Array) -> tuple[Floats, Floats]:
        """cos and sin of the angle of each position and pair, (context, D/2) each"""
        key = frequency.tobytes()
        if key not in self.turns:
            angle = np.outer(np.arange(self.context), frequency)
            self.turns[key] = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        return self.turns[key]


def padded(bias: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    return None if bias is None else pad(bias[None])[0]
