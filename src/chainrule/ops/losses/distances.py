"""Losses of the difference d = pred - target.        Derivations: docs/derivations/losses.md

`reduction` is "mean", "sum" or "none".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chainrule.autograd import Example, Op, Tensor
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, is_float
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._composition import Composition
from chainrule.ops._util import away_from_zero, examples, normal, shapes
from chainrule.ops.losses._reduction import reduced, spread


def _difference(name: str, pred: Array, target: Array) -> Array:
    if pred.shape != target.shape:  # broadcasting would silently compare every row with every other
        raise ShapeError(f"{name}: pred has shape {pred.shape}, target {target.shape} (must be equal)")
    return pred - (target if is_float(target) else target.astype(pred.dtype))


def _both(dpred: Array, needs: Needs) -> Grads:
    return dpred, -dpred if needs[1] else None  # forward was: d = pred - target                      [LO.1]


def mse_forward(pred: Array, target: Array, *, half: bool = False, reduction: str = "mean") -> Result:
    """Squared error d², d = pred - target of equal shapes; ½ d² with `half`.

    pred (...), target (...) -> loss (), or (...) with reduction none
    """
    d = _difference("mse", pred, target)
    loss = d * d
    if half:
        loss *= 0.5
    return reduced("mse", loss, reduction), (d, half, reduction)


def mse_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    d, half, reduction = saved
    g = spread(dy, d.size, reduction)
    return _both((g if half else 2 * g) * d, needs)  # [LO.2]


mse = Op(
    "mse", mse_forward, mse_backward,
    examples(shapes((3, 4), (3, 4)), shapes((7,), (7,), half=True, reduction="sum"),
             shapes((2, 1), (2, 1), reduction="none")),
)  # fmt: skip


def mae_forward(pred: Array, target: Array, *, reduction: str = "mean") -> Result:
    """Absolute error |d|, d = pred - target of equal shapes; the subgradient at d = 0 is 0

    pred (...), target (...) -> loss (), or (...) with reduction none
    """
    d = _difference("mae", pred, target)
    return reduced("mae", np.abs(d), reduction), (d, reduction)


def mae_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    d, reduction = saved
    return _both(spread(dy, d.size, reduction) * np.sign(d), needs)  # [LO.3]


def mae_example(rng: np.random.Generator) -> Iterator[Example]:
    target = normal(rng, 3, 4)
    yield Example((target + away_from_zero(rng, 3, 4), target))
    yield Example((away_from_zero(rng, 7, 1), np.zeros((7, 1))), {"reduction": "none"})


mae = Op("mae", mae_forward, mae_backward, mae_example)


def huber_forward(pred: Array, target: Array, *, delta: float = 1.0, reduction: str = "mean") -> Result:
    """½ d² for |d| ≤ δ, beyond it δ (|d| - ½ δ): the gradient of an outlier is at most δ

    pred (...), target (...) -> loss (), or (...) with reduction none
    """
    if not delta > 0:
        raise ConfigError(f"huber: delta is {delta} (must be above 0)")
    d = _difference("huber", pred, target)
    size = np.abs(d)
    near = np.minimum(size, delta)
    loss = near * (size - 0.5 * near)  # [LO.4]
    return reduced("huber", loss, reduction), (d, delta, reduction)


def huber_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    d, delta, reduction = saved
    return _both(spread(dy, d.size, reduction) * np.clip(d, -delta, delta), needs)  # [LO.5]


def huber_example(rng: np.random.Generator) -> Iterator[Example]:
    d = np.array([[0.3, -0.8, 1.4], [-2.5, 0.1, -1.2]])  # both sides of ±1, away from it
    target = normal(rng, 2, 3)
    yield Example((target + d, target))
    yield Example((target + d, target), {"delta": 0.5, "reduction": "none"})


huber = Op("huber", huber_forward, huber_backward, huber_example)


@Composition
def l2_to_reference(theta: Tensor, theta_ref: Tensor, lam: float) -> Tensor:
    """λ ‖θ - θ_ref‖², which pulls fine-tuned weights toward the pretrained ones; Tensors or arrays.

    theta (...), theta_ref (...) -> ()

    >>> import chainrule as cr
    >>> theta = cr.Tensor([1.0, 2.0], requires_grad=True)
    >>> cr.ops.l2_to_reference(theta, [0.5, 3.0], 0.1).backward()
    >>> theta.grad
    array([ 0.1, -0.2], dtype=float32)
    """
    return mse(theta, theta_ref, reduction="sum") * lam
