"""What a tuned model could do before: its loss on the old task, and the pull towards the weights that it had.

tuned too far if    loss on the old task  >  loss before tuning + tolerance
pull                λ |θ - θ_pre|², added to the loss
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chainrule import autograd, ops
from chainrule.autograd import Param
from chainrule.autograd.types import Array
from chainrule.models import Model
from chainrule.tasks.task import EvalBatches


@dataclass
class General:
    """Evaluation batches of the old task, and the loss that the model had there before it was tuned."""

    name: str
    model: Model
    """The tuned model itself, even if a model around it is trained."""
    batches: EvalBatches
    before: float
    tolerance: float | None = None
    """Training ends before the loss has risen by more; None lets it rise."""
    last: float | None = None
    """At the last evaluation."""
    forgot: bool = False
    """It has risen by more."""

    def look(self) -> str:
        """Measure the loss of the model, which is in evaluation mode; what to say of it."""
        self.last = self.model.mean_loss(self.batches)
        self.forgot = self.tolerance is not None and not self.last <= self.before + self.tolerance
        said = f"old task: loss {self.last:.4f}, before {self.before:.4f}"
        if self.forgot:
            return f"{said}: it rose by more than {self.tolerance:g}, training ends"
        return said


class Pull:
    """λ |θ - θ_pre|² over the weights that learn."""

    def __init__(
        self, parameters: Mapping[str, Param], reference: Mapping[str, Array], strength: float
    ) -> None:
        learning = {name: param for name, param in parameters.items() if param.requires_grad}
        unique = {id(param): (name, param) for name, param in learning.items()}
        self.pairs = [(param, reference[name].copy()) for name, param in unique.values()]
        self.strength = strength

    def backward(self, factor: float = 1.0) -> float:
        """Add the gradient of `factor` times the penalty; returns the penalty."""
        penalties: list[Any] = [
            ops.l2_to_reference(p, reference, self.strength) for p, reference in self.pairs
        ]
        autograd.backward([(penalty, penalty.dtype.type(factor)) for penalty in penalties])
        return sum(penalty.item() for penalty in penalties)
