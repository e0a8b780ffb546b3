"""A program run in NumPy, one instruction after the other: what the extension does, where it was not built.

It is also the meaning of the instructions in code, which the tests compare the extension with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import nn, ops
from chainrule.generate.weights import Floats, rounded
from chainrule.machine import one_blas_thread
from chainrule.nn import Embedding, Linear, RMSNorm
from chainrule.nn.program import Attend, Embed, Gate, Head, Instruction, Last, Norm, Project, joint_bias

Ids = npt.NDArray[np.integer[Any]]


@dataclass
class State:
    """New tokens of one sequence on their way through the program."""

    sequence: int
    tokens: Ids
    positions: Ids
    registers: dict[str, Any] = field(default_factory=dict)  # rows (T, width)


class Interpreter:
    """Runs a program with a copy of its weights, rounded to the format `weights`; fp32 keeps float64 as it is."""

    def __init__(self, program: Sequence[Instruction], weights: str, batch: int, context: int) -> None:
        self.weights = weights
        # Keys and values, (Hk, S, D) each, by instruction and sequence
        self.cache: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self.steps = [self._prepare(i, step) for i, step in enumerate(program)]

    def run(self, logits: Floats, tokens: Ids, sequences: Ids, counts: Ids, past: Ids) -> None:
        pieces = np.split(tokens, np.cumsum(counts)[:-1])
        with one_blas_thread():
            for i, (piece, sequence, before) in enumerate(zip(pieces, sequences, past, strict=True)):
                positions = np.arange(before, before + len(piece))
                state = State(int(sequence), piece, positions)
                for step in self.steps:
                    step(state, state.registers)
                logits[i] = state.registers["logits"]

    def copy(self, source: int, target: int, count: int) -> None:
        layers = {index for index, sequence in self.cache if sequence == source}
        for index in layers:  # nothing is ever written into these arrays: both may have them
            self.cache[index, target] = self.cache[index, source]

    def _prepare(self, index: int, step: Instruction) -> Callable[[State, dict[str, Any]], None]:
        """A function that does what the instruction says, with its weights as they are now."""
        match step:
            case Embed(out, table, positions, scale):
                W = self._matrix(table)
                P = None if positions is None else positions.copy()

                def embed(s: State, r: dict[str, Any]) -> None:
                    rows = W[s.tokens] if scale == 1 else W[s.tokens] * W.dtype.type(scale)
                    r[out] = rows if P is None else rows + P[s.positions]

                return embed
            case Norm(out, x, layer):
                gamma, eps = layer.weight.array.copy(), layer.eps
                if isinstance(layer, RMSNorm):
                    return lambda s, r: r.update({out: ops.rmsnorm(r[x], gamma, eps=eps)})
                beta = np.zeros_like(gamma) if layer.bias is None else layer.bias.array.copy()
                return lambda s, r: r.update({out: ops.layernorm(r[x], gamma, beta, eps=eps)})
            case Project(out, x, layers, activation, add):
                W = self._matrix(*layers)
                f = nn.activation(activation or "linear")
                b = joint_bias(layers)

                def project(s: State, r: dict[str, Any]) -> None:
                    y = f(ops.linear(r[x], W, b))
                    r[out] = r[out] + y if add else y

                return project
            case Attend():
                return lambda s, r: self._attend(index, step, s, r)
            case Gate(out, x):
                return lambda s, r: r.update({out: ops.swiglu(*np.split(r[x], 2, axis=-1))})
            case Last(out, x):
                return lambda s, r: r.update({out: r[x][-1:]})
            case Head(x, table, bias):
                W = self._matrix(table)
                b = None if bias is None else bias.array.reshape(-1).copy()
                return lambda s, r: r.update(logits=ops.linear(r[x], W, b))

    def _attend(self, index: int, step: Attend, s: State, r: dict[str, Any]) -> None:
        T, width = r[step.qkv].shape
        D = width // (step.heads + 2 * step.kv_heads)
        heads = r[step.qkv].reshape(T, -1, D).swapaxes(0, 1)  # (H + 2 Hk, T, D)
        q, k, v = np.split(heads, [step.heads, step.heads + step.kv_heads])
        if step.rotary is not None:
            q, k = (ops.rotary(x, positions=s.positions, frequency=step.rotary) for x in (q, k))
        if s.positions[0]:
            past_k, past_v = (past[:, : s.positions[0]] for past in self.cache[index, s.sequence])
            k, v = np.concatenate([past_k, k], axis=1), np.concatenate([past_v, v], axis=1)  # (Hk, S, D)
        self.cache[index, s.sequence] = k, v
        mixed = ops.attention(q, k, v, causal=True)  # (H, T, D)
        r[step.out] = mixed.swapaxes(0, 1).reshape(T, -1)

    def _matrix(self, *layers: Linear | Embedding) -> Floats:
        stacked = np.concatenate([layer.weight.array for layer in layers])
        return rounded(stacked, self.weights)
