"""Activations by name, and PReLU, the one that learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from chainrule import ops
from chainrule.autograd import Param, Tensor
from chainrule.errors import ConfigError
from chainrule.nn.layer import Layer

Activation: TypeAlias = Callable[[Any], Any]


class PReLU(Layer):
    """x where x > 0, α x elsewhere, with a learned α: one for all features (`size=1`) or one for each."""

    def __init__(self, size: int = 1, alpha: float = 0.25) -> None:
        self.alpha = Param(np.full(size, alpha))

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C)"""
        return ops.prelu(x, self.alpha)


def identity(x: Any) -> Any:
    """x itself: a stack of such layers is one linear map."""
    return x


ACTIVATIONS: dict[str, Activation] = {
    "linear": identity, "sigmoid": ops.sigmoid, "tanh": ops.tanh, "relu": ops.relu,
    "leaky_relu": ops.leaky_relu, "elu": ops.elu, "silu": ops.silu, "gelu": ops.gelu,
    "gelu_tanh": ops.gelu_tanh, "softplus": ops.softplus, "softmax": ops.softmax
}  # fmt: skip


def activation(f: str | Activation) -> Activation:
    """The activation called `f`: an op, or for "prelu" a new layer with its own α; a function is itself."""
    if not isinstance(f, str):
        return f
    if f == "prelu":
        return PReLU()
    if f not in ACTIVATIONS:
        raise ConfigError(f"activation: {f!r} (must be one of {', '.join([*ACTIVATIONS, 'prelu'])})")
    return ACTIVATIONS[f]
