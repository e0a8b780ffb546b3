"""A block of float64 parameters to try optimizers on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chainrule.autograd import Param, Parameters
from chainrule.optim import Optimizer


def block(*arrays: object, **named: object) -> Parameters:
    """Parameters p0, p1, ... (and named ones) holding these float64 values."""
    values = {f"p{i}": a for i, a in enumerate(arrays)} | named
    return Parameters((name, Param(np.array(a, np.float64), dtype=np.float64)) for name, a in values.items())


def set_gradients(params: Parameters, *grads: object) -> None:
    for param, grad in zip(params.values(), grads, strict=True):
        params.grad_view(param)[...] = grad


def descend_square(make: Callable[[Parameters], Optimizer], theta: float, steps: int) -> list[float]:
    """The path of `steps` updates on L(θ) = θ² from `theta`."""
    params = block([theta])
    optimizer = make(params)
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        (params["p0"] * params["p0"]).sum().backward()
        optimizer.step()
        path.append(float(params["p0"].data[0]))
    return path
