"""Adam and AdamW.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

import numpy as np

from chainrule.optim.adagrad import root, split
from chainrule.optim.optimizer import Betas, Optimizer
from chainrule.optim.tensors import Learned
from chainrule.types import Array


class Adam(Optimizer):
    """m ← β₁ m + (1 - β₁) g,  v ← β₂ v + (1 - β₂) g²,  w ← w - η m̂ / (√v̂ + ε).

    The hats correct the bias of starting at 0: m̂ = m / (1 - β₁ᵗ), v̂ = v / (1 - β₂ᵗ). With `eps_inside` the root is
    √(v̂ + ε). "Attention is all you need" uses betas (0.9, 0.98) and eps 1e-9.
    """

    slots = ("m", "v")
    weight_decay = 0.0

    def __init__(
        self,
        params: Learned,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        *,
        eps: float = 1e-8,
        eps_inside: bool = False,
    ) -> None:
        super().__init__(params, lr)
        self.require(all(0 <= beta < 1 for beta in betas), "betas", betas, "at least 0 and below 1, both")
        self.require(eps > 0, "eps", eps, "positive")
        self.betas = betas
        self.eps = eps
        self.eps_inside = eps_inside

    def update(
        self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool, scale: float = 1.0
    ) -> None:
        m, v = state
        beta1, beta2 = self.betas
        shrink = 1 - lr * self.weight_decay if decays else 1.0
        bias = 1 - beta2**self.steps
        rate = lr / (1 - beta1**self.steps)
        if self.kernels:
            eps = split(self.eps, self.eps_inside)
            averages = (beta1, 1 - beta1, beta2, 1 - beta2)
            self.kernels.adam_step(w, m, v, g, scale, *averages, bias, *eps, rate, shrink)
            return
        g, temp = self.scaled(g, scale), self.scratch(w)
        m *= beta1
        m += np.multiply(g, 1 - beta1, out=temp)  # [OP.12]
        np.square(g, out=temp)
        temp *= 1 - beta2
        v *= beta2
        v += temp  # [OP.13]
        np.divide(v, bias, out=temp)  # [OP.14]
        root(temp, self.eps, self.eps_inside)
        np.divide(m, temp, out=temp)
        temp *= rate
        w *= shrink  # [OP.16]
        w -= temp  # [OP.15]


class AdamW(Adam):
    """Adam with decoupled weight decay: w ← (1 - η λ) w, then Adam's step.

    Only parameters with `decay=True` (matrices, not biases and gains) shrink.
    """

    def __init__(
        self,
        params: Learned,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        *,
        weight_decay: float = 0.01,
        eps: float = 1e-8,
        eps_inside: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps=eps, eps_inside=eps_inside)
        self.require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
        self.weight_decay = weight_decay
