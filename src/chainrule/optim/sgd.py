"""Gradient descent, plain and with momentum.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

import numpy as np

from chainrule.optim.optimizer import Optimizer
from chainrule.optim.tensors import Learned
from chainrule.types import Array


class SGD(Optimizer):
    """w ← w - η g; full-batch, stochastic or mini-batch, depending on the examples `g` is averaged over.

    `weight_decay` adds the gradient λ w of the penalty λ|w|²/2 to matrices (not to biases and gains).
    """

    def __init__(self, params: Learned, lr: float, *, weight_decay: float = 0.0) -> None:
        super().__init__(params, lr)
        self.require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
        self.weight_decay = weight_decay

    def update(
        self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool, scale: float = 1.0
    ) -> None:
        if self.kernels:
            self.kernels.sgd_step(w, g, scale, self.weight_decay if decays else 0.0, lr)
            return
        w -= np.multiply(self.penalized(w, self.scaled(g, scale), decays), lr, out=self.scratch(w))  # [OP.1]

    def penalized(self, w: Array, g: Array, decays: bool) -> Array:
        """The gradient plus that of the penalty."""
        if not (decays and self.weight_decay):
            return g
        total = np.multiply(w, self.weight_decay, out=self.scratch(w))  # [OP.2]
        total += g
        return total


class Momentum(SGD):
    """Gradient descent with momentum: v ← ρ v + η g, w ← w - v.

    Under a constant gradient the velocity settles at η g / (1 - ρ). With `lr_inside=False` the rate
    multiplies the velocity instead (v ← ρ v + g, w ← w - η v): the same until the rate changes. `nesterov`
    steps along the velocity of the next step.
    """

    slots = ("v",)

    def __init__(
        self,
        params: Learned,
        lr: float,
        momentum: float = 0.9,
        *,
        lr_inside: bool = True,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr, weight_decay=weight_decay)
        self.require(0 <= momentum < 1, "momentum", momentum, "at least 0 and below 1")
        self.momentum = momentum
        self.lr_inside = lr_inside
        self.nesterov = nesterov

    def update(
        self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool, scale: float = 1.0
    ) -> None:
        (v,) = state
        inside, outside = (lr, 1.0) if self.lr_inside else (1.0, lr)  # [OP.3] [OP.4]
        if self.kernels:
            decay = self.weight_decay if decays else 0.0
            self.kernels.momentum_step(w, v, g, scale, decay, self.momentum, inside, outside, self.nesterov)
            return
        move = np.multiply(self.penalized(w, self.scaled(g, scale), decays), inside, out=self.scratch(w))
        v *= self.momentum
        v += move
        if self.nesterov:
            move += self.momentum * v  # [OP.5]
            move *= outside
        else:
            np.multiply(v, outside, out=move)
        w -= move
