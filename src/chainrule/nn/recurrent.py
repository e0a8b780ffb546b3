"""Recurrent layers: a cell carried along a sequence.        R-233 .. R-244 (seed 004 §6.3 - §6.6)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ShapeError
from chainrule.nn.init import Init, parameter, xavier_uniform, zeros
from chainrule.nn.layer import Layer


class Recurrent(Layer):
    """What the recurrent layers share: a matrix for the input, one for the state, the loop over time.

    A subclass sets `gates` and `cell`, one step: x (B, X) and the state -> the next state, whose first part is the
    output (B, H).
    """

    gates: ClassVar[int]
    cell: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]

    def __init__(self, n_in: int, n_hidden: int, *, init: Init = xavier_uniform) -> None:
        def stacked(shape: Shape, rng: np.random.Generator) -> Array:
            return np.concatenate([init((n_hidden, shape[1]), rng) for _ in range(self.gates)])

        self.n_hidden = n_hidden
        self.weight_x = parameter(stacked, (self.gates * n_hidden, n_in))
        self.weight_h = parameter(stacked, (self.gates * n_hidden, n_hidden))
        self.bias = parameter(zeros, (self.gates * n_hidden,))

    def start(self, B: int) -> tuple[Any, ...]:
        """The state before the first step, zeros."""
        return (np.zeros((B, self.n_hidden), self.bias.dtype),)

    def forward(self, x: Tensor, state: tuple[Any, ...] | None = None) -> tuple[Tensor, tuple[Any, ...]]:
        """x (B, T, X) -> the outputs of all steps (B, T, H), and the state after the last, to go on from"""
        if x.ndim != 3 or x.shape[1] == 0:
            raise ShapeError(
                f"{type(self).__name__}: x has shape {x.shape} (must be (B, T, X) with T at least 1)"
            )
        B = x.shape[0]
        state = self.start(B) if state is None else state
        outputs = []
        for step in _steps(x):
            state = self.cell(step, state)
            outputs.append(state[0].reshape(B, 1, self.n_hidden))
        return ops.concat(*outputs, axis=1), state  # (B, T, H)


class RNN(Recurrent):
    """h' = tanh(W_x x + W_h h + b)."""

    gates = 1

    def cell(self, x: Tensor, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return (ops.rnn_cell(x, *state, self.weight_x, self.weight_h, self.bias),)


class GRU(Recurrent):
    """h' = (1 - z) h + z n, with a reset gate r in n; gates stacked r, z, n."""

    gates = 3

    def cell(self, x: Tensor, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return (ops.gru_cell(x, *state, self.weight_x, self.weight_h, self.bias),)


class LSTM(Recurrent):
    """c' = f c + i g, h' = o tanh(c'); the state is (h, c), gates stacked i, f, g, o.

    The forget gate starts with bias 1: a fresh cell remembers.
    """

    gates = 4

    def __init__(self, n_in: int, n_hidden: int, *, init: Init = xavier_uniform) -> None:
        super().__init__(n_in, n_hidden, init=init)
        self.bias.data[n_hidden : 2 * n_hidden] = 1

    def start(self, B: int) -> tuple[Any, ...]:
        return super().start(B) * 2

    def cell(self, x: Tensor, state: tuple[Any, ...]) -> tuple[Any, ...]:
        h, c = ops.lstm_cell(x, *state, self.weight_x, self.weight_h, self.bias)
        return h, c


def _steps(x: Any) -> list[Any]:
    """x (B, T, X) as its T steps (B, X), by halving.

    Taking them out one by one, backward would write T arrays of the size of x; this way it is log T.
    """
    T = x.shape[1]
    if T == 1:
        return [x[:, 0]]
    return _steps(x[:, : T // 2]) + _steps(x[:, T // 2 :])
