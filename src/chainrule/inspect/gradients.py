"""Gradients of parameters, and the updates an optimizer makes of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from chainrule.autograd import Parameters
from chainrule.autograd.types import Array
from chainrule.optim import Optimizer


@dataclass(frozen=True)
class ParameterReport:
    """One trainable parameter: lengths (Euclidean norms) of its values, gradient and next update."""

    name: str
    shape: tuple[int, ...]
    weight_norm: float
    grad_norm: float
    update_norm: float | None = None

    @property
    def update_ratio(self) -> float | None:
        """Length of the update over the length of the weights; None for vectors, which often start at 0."""
        if self.update_norm is None or len(self.shape) < 2 or self.weight_norm == 0:
            return None
        return self.update_norm / self.weight_norm

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"shape": list(self.shape), "update_ratio": self.update_ratio}


def parameters(
    params: Parameters, optimizer: Optimizer | None = None, lr: float | None = None
) -> list[ParameterReport]:
    """Every trainable parameter with the gradient it holds now, tied ones once."""
    moved = trial_step(optimizer, lr) if optimizer else {}
    reports, known = [], set()
    for name, param in params.items():
        if param.requires_grad and id(param) not in known:
            known.add(id(param))
            grad = 0.0 if param.grad is None else norm(param.grad)
            update = norm(moved[name]) if optimizer else None
            reports.append(ParameterReport(name, param.shape, norm(param.array), grad, update))
    return reports


def trial_step(optimizer: Optimizer, lr: float | None = None) -> dict[str, Array]:
    """By how much the next step would move each parameter that learns; the step is taken and undone."""
    params = optimizer.params
    learning = params.data[: params.grad.size]  # what is frozen comes behind, and may be most of the model
    values, steps = learning.copy(), optimizer.steps
    arrays = {slot: array.copy() for slot, array in optimizer.arrays.items()}
    with np.errstate(all="ignore"):
        optimizer.step(lr)
        moved = learning - values
    learning[...] = values
    params.changed()
    optimizer.steps = steps
    for slot, array in arrays.items():
        optimizer.arrays[slot][...] = array
    start = params.offsets
    return {
        name: moved[start[id(p)] : start[id(p)] + p.size].reshape(p.shape)
        for name, p in params.items()
        if p.requires_grad
    }


def norm(x: Array) -> float:
    """√(Σ x²), summed in float64."""
    return float(np.sqrt(np.square(x, dtype=np.float64).sum()))
