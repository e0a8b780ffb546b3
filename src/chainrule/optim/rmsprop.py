"""RMSprop: AdaGrad with a decaying average of squares.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

import numpy as np

from chainrule.optim.adagrad import root, split
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.tensors import Learned
from chainrule.types import Array


class RMSprop(Optimizer):
    """v ← γ v + (1 - γ) g², w ← w - η g / (√v + ε); with `eps_inside` the root is √(v + ε)."""

    slots = ("v",)

    def __init__(
        self,
        params: Learned,
        lr: float = 0.01,
        decay: float = 0.99,
        *,
        eps: float = 1e-8,
        eps_inside: bool = False,
    ) -> None:
        super().__init__(params, lr)
        self.require(0 <= decay < 1, "decay", decay, "at least 0 and below 1")
        self.require(eps > 0, "eps", eps, "positive")
        self.decay = decay
        self.eps = eps
        self.eps_inside = eps_inside

    def update(self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool) -> None:
        (v,) = state
        if self.kernels:
            eps = split(self.eps, self.eps_inside)
            self.kernels.rms_step(w, v, g, self.decay, 1 - self.decay, *eps, lr)
            return
        temp = self.scratch(w)
        np.square(g, out=temp)
        temp *= 1 - self.decay
        v *= self.decay
        v += temp  # [OP.10]
        np.copyto(temp, v)
        root(temp, self.eps, self.eps_inside)
        np.divide(g, temp, out=temp)
        temp *= lr
        w -= temp  # [OP.11]
