"""Gradients of parameters, the updates an optimiser makes of them, and what depth does to a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.autograd import Parameters, Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.nn.activation import activation as get_activation
from chainrule.optim import Optimizer
from chainrule.random import generator


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
    params: Parameters, optimiser: Optimizer | None = None, lr: float | None = None
) -> list[ParameterReport]:
    """Every trainable parameter with the gradient it holds now, tied ones once."""
    moved = trial_step(optimiser, lr) if optimiser else {}
    reports, known = [], set()
    for name, param in params.items():
        if param.requires_grad and id(param) not in known:
            known.add(id(param))
            grad = 0.0 if param.grad is None else norm(param.grad)
            update = norm(moved[name]) if optimiser else None
            reports.append(ParameterReport(name, param.shape, norm(param.array), grad, update))
    return reports


def trial_step(optimiser: Optimizer, lr: float | None = None) -> dict[str, Array]:
    """By how much the next step would move each parameter; the step is taken and undone."""
    params = optimiser.params
    values, steps = params.data.copy(), optimiser.steps
    arrays = {slot: array.copy() for slot, array in optimiser.arrays.items()}
    with np.errstate(all="ignore"):
        optimiser.step(lr)
        moved = params.data - values
    params.data[...] = values
    params.changed()
    optimiser.steps = steps
    for slot, array in arrays.items():
        optimiser.arrays[slot][...] = array
    start = params.offsets
    return {name: moved[start[id(p)] : start[id(p)] + p.size].reshape(p.shape) for name, p in params.items()}


def norm(x: Array) -> float:
    """√(Σ x²), summed in float64."""
    return float(np.sqrt(np.square(x, dtype=np.float64).sum()))


# -- what depth does ---------------------------------------------------------------------------------------------


def by_depth(
    weights: Sequence[npt.ArrayLike],
    x: npt.ArrayLike,
    *,
    activation: str = "linear",
    residual: bool = False,
) -> npt.NDArray[np.float64]:
    """Norms of the gradient at the input of every layer and at the output, relative to the output: (L + 1,)

    A layer is f(W x), with `residual` x + f(W x); the gradient at the output is 1 in every entry.

    >>> import numpy as np
    >>> from chainrule.inspect import gradients_by_depth
    >>> float(gradients_by_depth([0.5 * np.eye(2)] * 10, [1.0, 1.0])[0])     # 0.5 ** 10
    0.0009765625
    """
    if not weights:
        raise ConfigError("by_depth: no weights (must be at least one layer)")
    f = get_activation(activation)
    hidden = Tensor(np.asarray(x, np.float64), requires_grad=True, dtype=np.float64)
    norms: list[float] = []

    def keep(grad: Array) -> None:
        norms.append(norm(grad))

    hidden.register_hook(keep)
    for W in weights:
        out = f(hidden @ np.asarray(W, np.float64).T)
        hidden = hidden + out if residual else out
        hidden.register_hook(keep)
    hidden.backward(np.ones(hidden.shape))
    found = np.array(norms[::-1])  # backward meets the output first
    return found / found[-1]


def random_stack(depth: int, width: int, scale: float, seed: int = 0) -> list[Array]:
    """`depth` matrices with entries N(0, scale²/width)."""
    rng = generator("random stack", seed=seed)
    return [scale / np.sqrt(width) * rng.normal(size=(width, width)) for _ in range(depth)]
