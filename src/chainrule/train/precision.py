"""Dynamic loss scaling, for gradients in fp16.

fp16 knows nothing below 6e-8, and many gradients are smaller. So the loss is multiplied by a large power of two, every
gradient grows with it, and the gradients of the float32 parameters are divided by it again: exactly, since it is a
power of two. Too large a factor makes something infinite: that step is left out, and the factor is halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chainrule.errors import Failure

PATIENCE = 1000  # good steps before a larger factor is tried
SMALLEST, LARGEST = 2.0**-10, 2.0**24


@dataclass
class LossScale:
    """The factor of the loss, and how many steps it has served."""

    factor: float = 2.0**16
    good: int = 0

    def update(self, finite: bool) -> None:
        """Learn whether the gradients of a step were finite."""
        if not finite:
            self.factor, self.good = self.factor / 2, 0
            if self.factor < SMALLEST:
                raise Failure(
                    f"train: gradients are not finite even with the loss scaled by {self.factor:g} "
                    "(the training diverges: try a smaller lr, or precision bf16)"
                )
        elif self.good + 1 < PATIENCE:
            self.good += 1
        else:
            self.factor, self.good = min(2 * self.factor, LARGEST), 0

    def load(self, state: dict[str, Any]) -> None:
        """Restore the state that `asdict` wrote."""
        self.factor = float(state.get("factor", self.factor))
        self.good = int(state.get("good", self.good))


class NoScale(LossScale):
    """float32 and bf16 reach down to 1e-38: nothing to scale, and a step that is not finite is an error."""

    def __init__(self) -> None:
        super().__init__(factor=1.0)

    def update(self, finite: bool) -> None:
        """The factor stays 1."""
