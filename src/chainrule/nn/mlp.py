"""Multilayer perceptrons: any depth (MLP), and the feed-forward parts of a transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.errors import ConfigError
from chainrule.nn.activation import Activation
from chainrule.nn.activation import activation as get_activation
from chainrule.nn.dropout import Dropout
from chainrule.nn.init import Init, kaiming_normal, xavier_uniform
from chainrule.nn.layer import Layer
from chainrule.nn.linear import Linear
from chainrule.nn.norm import BatchNorm, LayerNorm, RMSNorm

NORMS: dict[str, Callable[[int], Layer]] = {"batch": BatchNorm, "layer": LayerNorm, "rms": RMSNorm}


class MLP(Layer):
    """Linear layers with an activation between them, and optionally a normalization before each activation.

    `activation` is one for all hidden layers, or a list: one for each of them, and perhaps one for the output.

    Weights that read the output of an activation are drawn with its gain, the first ones with gain 1, so that
    a unit spread stays one at every depth. `output_init` draws the last layer: with small numbers the first
    loss is ln V.

    >>> from chainrule import nn
    >>> nn.MLP([2, 8, 8, 1], "tanh").count()
    105
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str | Activation | Sequence[str | Activation] = "relu",
        *,
        norm: str | None = None,
        init: Init | None = None,
        output_init: Init | None = None,
    ) -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise ConfigError(f"MLP: sizes {list(sizes)} (must be two or more, each at least 1)")
        if norm is not None and norm not in NORMS:
            raise ConfigError(f"MLP: norm {norm!r} (must be one of {', '.join(NORMS)})")
        hidden = sizes[1:-1]
        if isinstance(activation, str) or callable(activation):
            activation = [activation] * len(hidden)
        if len(activation) - len(hidden) not in (0, 1):
            raise ConfigError(
                f"MLP: {len(activation)} activations, {len(hidden)} hidden layers "
                "(must be one for each, or one more for the output)"
            )
        layers = []
        for i, (n_in, n_out) in enumerate(pairwise(sizes)):
            last = i == len(hidden)
            chosen = init or partial(kaiming_normal, activation=activation[i - 1] if i else "linear")
            bias = last or norm != "batch"  # before batch norm a bias has zero gradient
            layers.append(Linear(n_in, n_out, bias=bias, init=(output_init or chosen) if last else chosen))
        self.layers = layers
        self.norms = [] if norm is None else [NORMS[norm](n) for n in hidden]
        self.activations = [get_activation(kind) for kind in activation]

    def forward(self, x: Tensor, *, rows: Any = None) -> Tensor:
        """x (..., sizes[0]) -> (..., sizes[-1]); a batch norm is of the first `rows` of them, unless of all"""
        hidden = x
        for i, layer in enumerate(self.layers):
            hidden = layer(hidden)
            if i < len(self.norms):
                norm = self.norms[i]
                hidden = norm(hidden, rows=rows) if isinstance(norm, BatchNorm) else norm(hidden)
            if i < len(self.activations):
                hidden = self.activations[i](hidden)
        return hidden


class FeedForward(Layer):
    """fc2(f(fc1(x))): the position-wise part of a transformer block, four times as wide inside by default."""

    def __init__(
        self,
        dim: int,
        hidden: int | None = None,
        *,
        activation: str | Activation = "relu",
        dropout: float = 0.0,
        bias: bool = True,
        init: Init = xavier_uniform,
    ) -> None:
        hidden = 4 * dim if hidden is None else hidden
        self.fc1 = Linear(dim, hidden, bias=bias, init=init)
        self.fc2 = Linear(hidden, dim, bias=bias, init=init)
        self.activate = get_activation(activation)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C)"""
        return self.fc2(self.dropout(self.activate(self.fc1(x))))


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) · up, with the GELU's approximation by tanh"""
    return ops.gelu_tanh(gate) * up


GATES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"silu": ops.swiglu, "gelu_tanh": geglu}


class GatedFeedForward(Layer):
    """down(f(gate(x)) up(x)) without biases: SwiGLU, where f is SiLU, or GeGLU."""

    def __init__(
        self, dim: int, hidden: int, *, activation: str = "silu", init: Init = xavier_uniform
    ) -> None:
        if activation not in GATES:
            raise ConfigError(
                f"GatedFeedForward: activation {activation!r} (must be one of {', '.join(GATES)})"
            )
        self.gated = GATES[activation]
        self.gate_proj = Linear(dim, hidden, bias=False, init=init)
        self.up_proj = Linear(dim, hidden, bias=False, init=init)
        self.down_proj = Linear(hidden, dim, bias=False, init=init)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C)"""
        return self.down_proj(self.gated(self.gate_proj(x), self.up_proj(x)))
