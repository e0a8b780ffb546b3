"""A program in the C++ extension: weights packed once, then one call for all instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.autograd.types import Array
from chainrule.generate.weights import FORMATS, Words, pack, pad
from chainrule.nn import Embedding, Linear, RMSNorm
from chainrule.nn.program import Attend, Embed, Gate, Head, Instruction, Last, Norm, Project

ACTIVATIONS = (None, "gelu", "gelu_tanh")  # as in native/include/decode.hpp


def compiled(program: Sequence[Instruction], weights: str, batch: int, context: int) -> Any:
    """A `Program` of the extension with its own copy of the weights, in the format `weights`."""
    compiler = Compiler(weights, batch, context)
    for step in program:
        compiler.add(step)
    return compiler.program


class Compiler:
    def __init__(self, weights: str, batch: int, context: int) -> None:
        self.program = native.kernels().Program(batch, context)
        self.weights = weights
        self.code = FORMATS.index(weights)
        self.context = context
        self.registers: dict[str, tuple[int, int]] = {}  # number and width
        self.packed: dict[tuple[int, ...], Words] = {}  # by parameters: a tied matrix is packed once

    def add(self, step: Instruction) -> None:
        match step:
            case Embed(out, table, positions):
                V, C = table.weight.shape
                rows = None if positions is None else positions.weight.array.astype(np.float32)
                self.program.embed(self.new(out, C), self.words(table), self.code, V, rows)
            case Norm(out, x, layer):
                source, C = self.registers[x]
                gamma = layer.weight.array.astype(np.float32)
                if isinstance(layer, RMSNorm):
                    self.program.rmsnorm(self.new(out, C), source, gamma, layer.eps)
                else:
                    beta = np.zeros_like(gamma) if layer.bias is None else layer.bias.array.astype(np.float32)
                    self.program.layernorm(self.new(out, C), source, gamma, beta, layer.eps)
            case Project(out, x, layers, activation, add):
                joint = step.bias()
                bias = None if joint is None else pad(joint[None])[0]
                target = self.new(out, sum(layer.weight.shape[0] for layer in layers))
                source, _ = self.registers[x]
                words = self.words(*layers)
                self.program.linear(
                    target, source, words, self.code, bias, ACTIVATIONS.index(activation), add
                )
            case Attend(out, qkv, heads, kv_heads, rotary):
                source, width = self.registers[qkv]
                D = width // (heads + 2 * kv_heads)
                cos, sin = (None, None) if rotary is None else angles(self.context, rotary)
                self.program.attention(self.new(out, heads * D), source, heads, kv_heads, cos, sin)
            case Gate(out, x):
                source, width = self.registers[x]
                self.program.swiglu(self.new(out, width // 2), source)
            case Last(out, x):
                source, width = self.registers[x]
                self.program.last(self.new(out, width), source)
            case Head(x, table):
                source, _ = self.registers[x]
                target = self.new("logits", table.weight.shape[0])
                self.program.linear(target, source, self.words(table), self.code, None, 0, False)

    def new(self, name: str, width: int) -> int:
        """The number of a register, which is made when it is first written."""
        if name not in self.registers:
            self.registers[name] = self.program.buffer(width), width
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


def angles(n: int, frequency: Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """cos and sin of the angle of each position and pair, (n, D/2) each"""
    angle = np.outer(np.arange(n), frequency)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
