"""Dropout layer: random zeros in training, nothing in evaluation."""

from __future__ import annotations

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.errors import ConfigError
from chainrule.nn.layer import Layer
from chainrule.random import next_key


class Dropout(Layer):
    """Sets a fraction `p` of the entries to 0 and scales the rest by 1/(1-p), in training mode only."""

    def __init__(self, p: float) -> None:
        if not 0 <= p < 1:
            raise ConfigError(f"Dropout: p is {p!r} (must be at least 0 and below 1)")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape (...) -> the same shape (...)"""
        if not self.training or self.p == 0:
            return x
        return ops.dropout(x, p=self.p, key=next_key("dropout"))
