"""AdaGrad: a learning rate per parameter that only shrinks.        Derivation: docs/derivations/optimizers.md"""

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

    def update(self, w: Array, g: Array, state: tuple[Array, ...], lr: float, decays: bool) -> None:
        (G,) = state
        if self.kernels:
            self.kernels.rms_step(w, G, g, 1.0, 1.0, *split(self.eps, self.eps_inside), lr)
            return
        temp = self.scratch(w)
        G += np.square(g, out=temp)  # [OP.6]
        np.copyto(temp, G)
        root(temp, self.eps, self.eps_inside)
        np.divide(g, temp, out=temp)
        temp *= lr
        w -= temp  # [OP.7]


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
