"""Gradients of parameters, and the updates an optimizer makes of them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from chainrule.autograd import Parameters
from chainrule.autograd.types import Array
from chainrule.optim import Optimizer
from chainrule.optim.optimizer import CHUNK


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
    moved = update_norms(optimizer, lr) if optimizer else {}
    reports, known = [], set()
    for name, param in params.items():
        if param.requires_grad and id(param) not in known:
            known.add(id(param))
            grad = 0.0 if param.grad is None else norm(param.grad)
            reports.append(ParameterReport(name, param.shape, norm(param.array), grad, moved.get(id(param))))
    return reports


def update_norms(optimizer: Optimizer, lr: float | None = None) -> dict[int, float]:
    """How far the next step would move each parameter that learns, by `id`: chunk by chunk, without a second copy."""
    starts = optimizer.params.offsets
    learning = {id(param): param.size for _, param in optimizer.params.items() if param.requires_grad}
    places = sorted((starts[key], starts[key] + size, key) for key, size in learning.items())
    squares, at = dict.fromkeys(learning, 0.0), 0
    with np.errstate(all="ignore"):
        for start, moved in optimizer.rehearse(lr):  # in the order of their places
            while places[at][1] <= start:
                at += 1
            for first, end, key in places[at:]:
                if first >= start + moved.size:
                    break
                part = moved[max(first - start, 0) : end - start]
                squares[key] += float(np.square(part, dtype=np.float64).sum())
    return {key: math.sqrt(total) for key, total in squares.items()}


def norm(x: Array) -> float:
    """√(Σ x²), summed in float64, a chunk at a time: of a large matrix a copy of twice its size would be made."""
    flat = np.ravel(x)
    chunks = (flat[start : start + CHUNK] for start in range(0, flat.size, CHUNK))
    return math.sqrt(sum(float(np.square(chunk, dtype=np.float64).sum()) for chunk in chunks))
