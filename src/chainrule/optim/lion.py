"""Lion: steps along the sign of a momentum.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

import numpy as np

from chainrule.optim.optimizer import Betas, Optimizer
from chainrule.optim.tensors import Learned
from chainrule.types import Array


class Lion(Optimizer):
    """w ← (1 - η λ) w - η sign(β₁ m + (1 - β₁) g), then m ← β₂ m + (1 - β₂) g.

    Every weight moves by exactly η, so the learning rate should be about a tenth of Adam's. Only matrices decay.
    """

    slots = ("m",)

    def __init__(
        self, params: Learned, lr: float = 1e-4, betas: Betas = (0.9, 0.99), *, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, lr)
        self.require(all(0 <= beta < 1 for beta in betas), "betas", betas, "at least 0 and below 1, both")
        self.require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
        self.betas = betas
        self.weight_decay = weight_decay

    def update(
        self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool, scale: float = 1.0
    ) -> None:
        (m,) = state
        beta1, beta2 = self.betas
        shrink = 1 - lr * self.weight_decay if decays else 1.0
        if self.kernels:
            self.kernels.lion_step(w, m, g, scale, beta1, 1 - beta1, beta2, 1 - beta2, lr, shrink)
            return
        g = self.scaled(g, scale)
        move = np.multiply(m, beta1, out=self.scratch(w))
        move += (1 - beta1) * g
        np.sign(move, out=move)
        move *= lr
        w *= shrink
        w -= move  # [OP.17]
        m *= beta2
        m += np.multiply(g, 1 - beta2, out=move)  # [OP.18]
