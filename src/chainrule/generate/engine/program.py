"""A decoder program in the C++ extension: weights packed once, then one call for all instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array
from chainrule.generate.engine.weights import CACHES, CODES, Floats, Words, by_format, format_of, pack, pad
from chainrule.trace.terms import Instruction, Register, Weight

ACTIVATIONS = (None, "gelu", "gelu_tanh", "relu", "silu")  # as in native/decode/decode.hpp
CELLS = ("rnn", "lstm", "gru", "gru_after")  # as in native/decode/program.hpp
UNLIMITED = 1 << 62  # positions of a recurrent model


def runs(dtype: npt.DTypeLike) -> bool:
    """Whether the extension is there, wanted, and made for weights of this type."""
    return mode.backend == "native" and native.available() and dtype == np.float32


class Compiler:
    """Instructions with a copy of their weights, packed: calls that make a `Program` of the extension, or several."""

    def __init__(self, program: Sequence[Instruction], weights: str, context: int) -> None:
        self.weights = weights
        prompt = program[0].arguments["prompt"]
        rows = 0 if prompt is None else len(prompt)
        prefixes = (step.arguments.get("prefix") for step in program)
        self.positions = context + rows
        self.before = rows + max((p[0].shape[1] for p in prefixes if p is not None), default=0)
        """Positions of a cache before those of the first token: of a soft prompt, and of the longest prefix."""
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.packed: dict[
            tuple[int, ...], tuple[Words, int]
        ] = {}  # by parameters: a tied matrix is packed once
        self.alive: list[Weight] = []  # so that an identity stays one while weights are packed
        self.angles: dict[bytes, tuple[Floats, Floats]] = {}  # by frequencies, which all layers share
        self.buffers = _Buffers(program)
        for i, step in enumerate(program):
            self._compile(i, step)
        self.alive.clear()

    def open(self, batch: int, cache_bytes: int = 0, cache: str = "fp32") -> Any:
        """A `Program` with caches of its own for `batch` sequences; all share the weights."""
        program = native.kernels().Program(batch, self.positions, cache_bytes, CACHES.index(cache))
        for name, arguments in self.calls:
            getattr(program, name)(*arguments)
        return program

    def _compile(self, i: int, step: Instruction) -> None:
        reads: list[Any] = [self.buffers.number[x] for x in step.reads]
        base = None if step.base is None else self.buffers.number[step.base]
        out, made = self.buffers.take(i, step)
        if made:
            self.calls.append(("buffer", (step.out.width,)))
        if step.name == "linear":
            self._linear(out, *reads, add=base == out, **step.arguments)
        else:
            arguments = getattr(self, f"_{step.name}", lambda: ())(**step.arguments)
            self.calls.append(
                (step.name, (out, *((base,) if step.name == "add" else ()), *reads, *arguments))
            )
        if step.name == "linear" and base not in (None, out):  # the base is needed again: it stays as it is
            self.calls.append(("add", (out, base, out)))

    def _embedding(
        self, table: Weight, scale: float, positions: Array | None, prompt: Array | None
    ) -> tuple[Any, ...]:
        rows = (None if x is None else np.array(x, np.float32, order="C") for x in (positions, prompt))
        return *self._words(table), table.shape[0], scale, *rows

    def _layernorm(self, gamma: Array, beta: Array, eps: float) -> tuple[Any, ...]:
        return gamma.astype(np.float32), beta.astype(np.float32), eps

    def _rmsnorm(self, gamma: Array, eps: float) -> tuple[Any, ...]:
        return gamma.astype(np.float32), eps

    def _linear(
        self, out: int, x: int, weight: Weight, bias: Array | None, activation: str | None, *, add: bool
    ) -> None:
        """A call for each run of matrices of one format"""
        first = 0
        for _, parts in by_format(weight.parts, self.weights):
            run = weight if len(parts) == len(weight.parts) else Weight(tuple(parts))
            end = first + run.shape[0]
            some = None if bias is None else _padded(bias[first:end])
            arguments = (*self._words(run), some, ACTIVATIONS.index(activation), add, first, run.shape[0])
            self.calls.append(("linear", (out, x, *arguments)))
            first = end

    def _attention(
        self,
        heads: int,
        kv_heads: int,
        scale: float,
        frequency: Array | None,
        norms: Any = None,
        bias: Array | None = None,
        prefix: tuple[Array, Array] | None = None,
    ) -> tuple[Any, ...]:
        angles = (None, None) if frequency is None else self._turns(frequency)
        (q, eps), (k, _) = norms or ((None, 0.0), (None, 0.0))
        gains = (None if gain is None else gain.astype(np.float32) for gain in (q, k))
        before = (None, None) if prefix is None else map(_heads_in_rows, prefix)
        distances = None if bias is None else np.array(bias, np.float32, order="C")
        return heads, kv_heads, scale, *angles, *gains, eps, distances, *before

    def _cross_attention(
        self, heads: int, scale: float, weight: Weight, bias: Array | None
    ) -> tuple[Any, ...]:
        return heads, scale, weight.shape[1], *self._words(weight), _padded(bias)

    def _scale(self, factor: float) -> tuple[Any, ...]:
        return (factor,)

    def _gated(self, activation: str) -> tuple[Any, ...]:
        return self._activation(activation)

    def _activation(self, activation: str) -> tuple[Any, ...]:
        return (ACTIVATIONS.index(activation),)

    def _recurrent(
        self, kind: str, weight: Weight, bias: Array | None, reset_after: bool = False
    ) -> tuple[Any, ...]:
        if kind != "gru" or reset_after:
            cell = CELLS.index("gru_after" if reset_after else kind)
            words, code = self._words(weight)
            return cell, words, None, code, _padded(bias)
        W = weight.array()
        gates, candidate = np.split(W, [2 * len(W) // 3])
        (first, code), (second, _) = (self._words(Weight((part,))) for part in (gates, candidate))
        return CELLS.index(kind), first, second, code, None

    def _words(self, matrix: Weight) -> tuple[Words, int]:
        """Matrices one above the other, packed, and the number of their format."""
        if matrix.key not in self.packed:
            self.alive.append(matrix)
            format = format_of(matrix.parts, self.weights)
            self.packed[matrix.key] = pack(matrix.parts, format), CODES[format]
        return self.packed[matrix.key]

    def _turns(self, frequency: Array) -> tuple[Floats, Floats]:
        """cos and sin of the angle of each position and pair, (positions, D/2) each"""
        key = frequency.tobytes()
        if key not in self.angles:
            angle = np.outer(np.arange(self.positions), frequency)
            self.angles[key] = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        return self.angles[key]


class _Buffers:
    """Which buffer of the extension each register has: one that is no longer needed, or a new one."""

    def __init__(self, program: Sequence[Instruction]) -> None:
        self.number: dict[Register, int] = {}
        self.made = 0
        self.free: dict[tuple[int, bool], list[int]] = {}
        self.last_use = {x: i for i, step in enumerate(program) for x in step.needed}
        self.last_rows = next(i for i, step in enumerate(program) if step.name == "last")
        # The result is read from the buffer that was made last.
        self.results = {program[-1].out}
        for step in reversed(program):
            if step.out in self.results and step.base is not None:
                self.results.add(step.base)

    def take(self, i: int, step: Instruction) -> tuple[int, bool]:
        """The buffer that a step writes to, and whether it is new; those it reads last are free afterwards."""
        kind = step.out.width, i > self.last_rows
        spare = self.free.setdefault(kind, [])
        new = False
        if step.base is not None and self.last_use[step.base] == i:
            number = self.number[step.base]
        elif spare and step.out not in self.results:
            number = spare.pop()
        else:
            number, new = self.made, True
            self.made += 1
        self.number[step.out] = number
        for x in set(step.needed):
            if self.last_use[x] == i and self.number[x] != number:
                self.free.setdefault((x.width, i > self.last_rows), []).append(self.number[x])
        return number, new


def _heads_in_rows(x: Array) -> Array:
    """(H, P, D) -> (H P, D), a copy"""
    return np.array(x, np.float32, order="C").reshape(-1, x.shape[-1])


def _padded(bias: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    return None if bias is None else pad(bias[None])[0]
