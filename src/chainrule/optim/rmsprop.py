"""RMSprop: AdaGrad with a decaying average of squares.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

from chainrule.optim.adagrad import AdaGrad
from chainrule.optim.optimizer import Block


class RMSprop(AdaGrad):
    """v ← γ v + (1 - γ) g², w ← w - η g / (√v + ε); with `eps_inside` the root is √(v + ε)."""

    slots = ("v",)

    def __init__(
        self, params: Block, lr: float = 0.01, decay: float = 0.99, *, eps: float = 1e-8, eps_inside: bool = False
    ) -> None:  # fmt: skip
        super().__init__(params, lr, eps=eps, eps_inside=eps_inside)
        self.require(0 <= decay < 1, "decay", decay, "at least 0 and below 1")
        self.decay = self.keep = decay
        self.add = 1 - decay
