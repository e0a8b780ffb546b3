"""Gradient checking by random projection, in float64.

A backward pass claims, for outputs y = f(x) and any seed v, to return Jᵀv. For a random direction u

    (Jᵀv) · u  =  d/dh [ v · f(x + h u) ]  at h = 0

so one number checks the whole Jacobian at once: an error in any entry shows up, except with probability zero.
Each input has directions of its own, so that a failure names the argument at fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.mode import backend, no_grad
from chainrule.autograd.param import Parameters
from chainrule.autograd.tape import gradient, replay, source_of
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Shape
from chainrule.errors import GradientError

STEP = 1e-3  # along a unit direction: the five-point formula errs by h⁴ = 1e-12, rounding by 1e-16/h = 1e-13


def slope(value: Callable[[float], float], step: float = STEP) -> float:
    """Derivative at 0 of a function of one number, by the five-point central difference (error O(h⁴))."""
    near = value(step) - value(-step)
    far = value(2 * step) - value(-2 * step)
    return (8 * near - far) / (12 * step)


def gradcheck(
    fn: Callable[..., Any],
    *inputs: Any,
    rtol: float = 1e-6,
    projections: int = 3,
    step: float = STEP,
    wrt: tuple[int, ...] | None = None,
    seed: int = 0,
) -> float:
    """Compare the backward pass of `fn` with central differences; returns the largest relative error.

    `fn` takes Tensors and returns a Tensor or a tuple of them. Float `inputs` are checked in float64 (all, or those
    at the positions `wrt`); other arguments are passed unchanged. Raises `GradientError` above `rtol`.

    >>> import chainrule as cr, numpy as np
    >>> cr.gradcheck(lambda x: (x * x).sum(), np.array([1.0, 2.0, 3.0])) < 1e-9
    True
    """
    rng = np.random.default_rng(seed)
    args = [np.array(plain(a), dtype=np.float64) if differentiable(plain(a)) else a for a in inputs]
    positions = [i for i, a in enumerate(args) if differentiable(a) and (wrt is None or i in wrt)]
    if not any(args[i].size for i in positions):
        raise GradientError(
            "gradcheck: nothing to check (no input is a float array with at least one element)"
        )
    worst = 0.0
    with backend("reference"):
        for _ in range(projections):
            seeds = [rng.normal(size=y.shape) for y in outputs_of(fn, args)]
            grads = backward_of(fn, args, positions, seeds)
            for i in positions:
                direction = _unit(rng, args[i].shape)
                analytic = float(np.sum(grads[i] * direction))

                def along(h: float, i: int = i, u: Array = direction, vs: list[Array] = seeds) -> float:
                    moved = [a + h * u if j == i else a for j, a in enumerate(args)]
                    return sum(float(np.sum(v * y)) for v, y in zip(vs, outputs_of(fn, moved), strict=True))

                scale = float(np.linalg.norm(grads[i])) / max(1, args[i].size) ** 0.5
                worst = max(worst, _compare(f"input {i}", analytic, slope(along, step), scale, rtol))
    return worst


def gradcheck_model(
    parameters: Parameters,
    loss: Callable[[], Tensor],
    *,
    rtol: float = 1e-6,
    step: float = STEP,
    seed: int = 0,
) -> float:
    """`gradcheck` for a whole model: every parameter of a float64 block, against the scalar `loss()`.

    Returns the largest relative error over all parameters; raises `GradientError` naming the first one above `rtol`.
    """
    if parameters.dtype != np.float64:
        raise GradientError(
            f"gradcheck_model: parameters are {parameters.dtype} (must be float64: model.to(float64))"
        )
    rng = np.random.default_rng(seed)
    worst = 0.0
    with backend("reference"):
        parameters.zero_grad()
        loss().backward()
        total = float(np.linalg.norm(parameters.grad))
        for name, param in parameters.items():
            if not param.requires_grad:
                continue
            start, grad = param.array.copy(), parameters.grad_view(param)
            direction = _unit(rng, param.shape)
            analytic = float(np.sum(grad * direction))

            def along(
                h: float, start: Array = start, u: Array = direction, values: Array = param.array
            ) -> float:
                values[...] = start + h * u
                with no_grad():
                    return loss().item()

            numeric = slope(along, step)
            param.array[...] = start
            # A gradient may be exactly 0 (that of a key bias): compare with the size of the whole gradient.
            scale = max(float(np.linalg.norm(grad)), 1e-3 * total) / param.size**0.5
            worst = max(worst, _compare(name, analytic, numeric, scale, rtol))
    return worst


def differentiable(value: Any) -> bool:
    return isinstance(value, float | np.floating) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


def plain(value: Any) -> Any:
    """Tensors and lists of numbers as arrays."""
    if isinstance(value, Tensor):
        return value.array
    return np.asarray(value) if isinstance(value, list) else value


def _unit(rng: np.random.Generator, shape: Shape) -> Array:
    direction = rng.normal(size=shape)
    return direction / max(float(np.linalg.norm(direction)), 1e-30)


def _tensors(outputs: Any) -> tuple[Tensor, ...]:
    found = outputs if isinstance(outputs, tuple) else (outputs,)
    for y in found:
        if not isinstance(y, Tensor):
            raise GradientError(
                f"gradcheck: the function returned {type(y).__name__} (must be a Tensor or a tuple)"
            )
    return found


def outputs_of(fn: Callable[..., Any], args: list[Any]) -> list[Array]:
    with no_grad():
        return [y.array for y in _tensors(fn(*(Tensor(a) if differentiable(a) else a for a in args)))]


def backward_of(
    fn: Callable[..., Any], args: list[Any], positions: list[int], seeds: list[Array]
) -> dict[int, Array]:
    tensors = [
        Tensor(a, requires_grad=i in positions) if differentiable(a) else a for i, a in enumerate(args)
    ]
    outputs = zip(_tensors(fn(*tensors)), seeds, strict=True)
    replay([(source_of(y), v) for y, v in outputs])
    return {i: gradient(tensors[i]) for i in positions}


def _compare(what: str, analytic: float, numeric: float, scale: float, rtol: float) -> float:
    size = max(abs(analytic), abs(numeric), scale)
    error = abs(analytic - numeric) / size if size > 1e-8 else abs(analytic - numeric)
    if not error <= rtol:  # also catches NaN
        raise GradientError(
            f"gradcheck: {what}: backward gives {analytic:.9g}, central difference {numeric:.9g} "
            f"(relative error {error:.2e}, must be at most {rtol:g})"
        )
    return error
