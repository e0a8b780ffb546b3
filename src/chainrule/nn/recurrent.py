"""Recurrent layers: a cell carried along a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ConfigError, ShapeError
from chainrule.nn.dropout import Dropout
from chainrule.nn.init import Init, parameter, xavier_uniform, zeros
from chainrule.nn.layer import Layer


class Recurrent(Layer):
    """What the recurrent layers share: a matrix for the input, one for the state, and how a sequence begins.

    A subclass sets `gates` and `sequence`: x (B, T, X) and the state -> the outputs (B, T, H) and the last state.
    """

    gates: ClassVar[int]
    sequence: Callable[..., tuple[Any, ...]]

    def __init__(self, n_in: int, n_hidden: int, *, init: Init = xavier_uniform) -> None:
        def stacked(shape: Shape, rng: np.random.Generator) -> Array:
            return np.concatenate([init((n_hidden, shape[1]), rng) for _ in range(self.gates)])

        self.n_hidden = n_hidden
        self.weight_x = parameter(stacked, (self.gates * n_hidden, n_in))
        self.weight_h = parameter(stacked, (self.gates * n_hidden, n_hidden))
        self.bias = parameter(zeros, (self.gates * n_hidden,))

    def start(self, B: int) -> tuple[Any, ...]:
        """The state before the first step, zeros."""
        return (constant(np.zeros((B, self.n_hidden), self.bias.dtype)),)

    def forward(self, x: Tensor, state: tuple[Any, ...] | None = None) -> tuple[Tensor, tuple[Any, ...]]:
        """x (B, T, X) -> the outputs of all steps (B, T, H), and the state after the last, to continue from"""
        if x.ndim != 3 or x.shape[1] == 0:
            raise ShapeError(
                f"{type(self).__name__}: x has shape {x.shape} (must be (B, T, X) with T at least 1)"
            )
        outputs, *state_after = self.sequence(x, *(self.start(len(x)) if state is None else state))
        return outputs, tuple(state_after)


class RNN(Recurrent):
    """h' = tanh(W_x x + W_h h + b)."""

    gates = 1

    def sequence(self, x: Tensor, h: Any) -> tuple[Any, ...]:
        return ops.rnn_sequence(x, h, self.weight_x, self.weight_h, self.bias)


class GRU(Recurrent):
    """h' = (1 - z) h + z n, with a reset gate r in n; gates stacked r, z, n.

    `reset_after=True` is PyTorch's GRU: r multiplies the finished product with its bias `bias_h`, and z keeps.
    """

    gates = 3

    def __init__(
        self, n_in: int, n_hidden: int, *, init: Init = xavier_uniform, reset_after: bool = False
    ) -> None:
        super().__init__(n_in, n_hidden, init=init)
        self.reset_after = reset_after
        self.bias_h = parameter(zeros, (3 * n_hidden,)) if reset_after else None

    def sequence(self, x: Tensor, h: Any) -> tuple[Any, ...]:
        weights = (self.weight_x, self.weight_h, self.bias, self.bias_h)
        return ops.gru_sequence(x, h, *weights, reset_after=self.reset_after)


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

    def sequence(self, x: Tensor, h: Any, c: Any) -> tuple[Any, ...]:
        return ops.lstm_sequence(x, h, c, self.weight_x, self.weight_h, self.bias)


class Stack(Layer):
    """Recurrent layers one above the other, each reading the outputs of the one below, dropped out in training.

    The state is a tuple with the state of each layer.
    """

    def __init__(self, layers: Sequence[Recurrent], *, dropout: float = 0.0) -> None:
        if not layers:
            raise ConfigError("Stack: got no layers (must be at least one)")
        self.layers = list(layers)
        self.dropout = Dropout(dropout)

    def start(self, B: int) -> tuple[Any, ...]:
        """The state before the first step, zeros."""
        return tuple(layer.start(B) for layer in self.layers)

    def forward(self, x: Tensor, state: tuple[Any, ...] | None = None) -> tuple[Tensor, tuple[Any, ...]]:
        """x (B, T, X) -> the outputs of the last layer (B, T, H), and the state after the last step"""
        after = []
        for i, layer in enumerate(self.layers):
            x, last = layer(self.dropout(x) if i else x, None if state is None else state[i])
            after.append(last)
        return x, tuple(after)


class Bidirectional(Layer):
    """Two layers, one from the first step to the last and one from the last to the first.

    So the output at a step knows what came before and what comes after: for labels, not for what comes next.
    """

    def __init__(self, ahead: Recurrent, back: Recurrent) -> None:
        self.ahead = ahead
        self.back = back

    def forward(self, x: Tensor, lengths: Array | None = None) -> Tensor:
        """x (B, T, X) -> the outputs of both (B, T, 2H); of row b only the first lengths[b] steps are text

        Behind the text the outputs mean nothing.
        """
        B, T = x.shape[:2]
        ends = np.full(B, T) if lengths is None else np.asarray(lengths)
        steps = np.arange(T)
        mirror = np.where(steps < ends[:, None], ends[:, None] - 1 - steps, steps)  # (B, T), its own inverse
        rows = np.arange(B)[:, None]
        backwards, _ = self.back(x[rows, mirror])
        return ops.concat(self.ahead(x)[0], backwards[rows, mirror], axis=-1)
