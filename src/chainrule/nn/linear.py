"""Linear layer: parameters for `ops.linear`."""

from __future__ import annotations

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.nn.init import Init, parameter, xavier_uniform, zeros
from chainrule.nn.layer import Layer


class Linear(Layer):
    """y = x Wᵀ + b, W stored (out, in).

    >>> import numpy as np
    >>> from chainrule import nn
    >>> nn.Linear(3, 2)(np.ones((5, 3), np.float32)).shape
    (5, 2)
    """

    def __init__(self, n_in: int, n_out: int, *, bias: bool = True, init: Init = xavier_uniform) -> None:
        self.weight = parameter(init, (n_out, n_in))
        self.bias = parameter(zeros, (n_out,)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in) -> (..., out)"""
        return ops.linear(x, self.weight, self.bias)
