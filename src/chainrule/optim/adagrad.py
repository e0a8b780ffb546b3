"""AdaGrad: a learning rate per parameter that only shrinks; RMSprop, in which old gradients fade.

Derivation: docs/derivations/optimizers.md
"""

from __future__ import annotations

import numpy as np

from chainrule.optim.optimizer import Optimizer
from chainrule.optim.tensors import Learned
from chainrule.types import Array


class AdaGrad(Optimizer):
    """G ← G + g², w ← w - η g / (√G + ε); with `eps_inside` the root is √(G + ε)."""

    slots = ("G",)

    def __init__(
        self, params: Learned, lr: float = 0.01, *, eps: float = 1e-8, eps_inside: bool = False
    ) -> None:
        super().__init__(params, lr)
        self.require(eps > 0, "eps", eps, "positive")
        self.eps = eps
        self.eps_inside = eps_inside

    @property
    def weights(self) -> tuple[float, float]:
        """What of the old sum is kept, and what of the new square is added."""
        return 1.0, 1.0

    def update(
        self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool, scale: float = 1.0
    ) -> None:
        (G,) = state
        keep, add = self.weights
        if self.kernels:
            self.kernels.rms_step(w, G, g, scale, keep, add, *split(self.eps, self.eps_inside), lr)
            return
        g, temp = self.scaled(g, scale), self.scratch(w)
        np.square(g, out=temp)
        temp *= add
        G *= keep
        G += temp  # [OP.6] [OP.10]
        np.copyto(temp, G)
        root(temp, self.eps, self.eps_inside)
        np.divide(g, temp, out=temp)
        temp *= lr
        w -= temp  # [OP.7] [OP.11]


class RMSprop(AdaGrad):
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
        super().__init__(params, lr, eps=eps, eps_inside=eps_inside)
        self.require(0 <= decay < 1, "decay", decay, "at least 0 and below 1")
        self.decay = decay

    @property
    def weights(self) -> tuple[float, float]:
        return self.decay, 1 - self.decay


def split(eps: float, inside: bool) -> tuple[float, float]:
    """(ε inside the root, ε outside), as the kernels take them; one of them is 0."""
    return (eps, 0.0) if inside else (0.0, eps)


def root(x: Array, eps: float, inside: bool) -> None:
    """x ← √x + ε, or √(x + ε), in place."""
    if inside:
        x += eps  # [OP.9]
    np.sqrt(x, out=x)
    if not inside:
        x += eps  # [OP.8]
