"""Softmax and cross-entropy, fused, from logits.        Derivation: docs/derivations/cross_entropy.md

    loss = log Σ_j e^z_j - Σ_i t_i z_i,   dz = softmax(z) - t

Saved are the logits and two numbers per row: neither probabilities nor one-hot targets are stored. Both passes work on
blocks of rows that fit in the cache, so the gradient is the only new (N, V) array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape
from chainrule.ops._util import native_sum, normal
from chainrule.ops.arrays import reduce
from chainrule.ops.arrays.elementwise import mul, neg
from chainrule.ops.losses._targets import Goal, abstract_goal, dense, read_goal
from chainrule.ops.neural.softmax import log_softmax, minus_max, one_if_empty

BLOCK = 1 << 16  # logits per block of rows


def forward(
    logits: Array,
    *,
    targets: Any,
    weights: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    exclude_true: bool = False,
    reduction: str = "mean",
) -> Result:
    """The cross-entropy of softmax(logits) and the targets, in nats.

    logits (..., V); targets are class ids (...) or distributions (..., V). Positions with id `ignore_index`
    or with a weight of 0 in `weights` (...) contribute neither value nor gradient. `reduction` is "mean" (by
    weight, over the counted positions; 0 without any), "sum" or "none". For `label_smoothing` see
    `smooth_labels`.
    """
    x = logits.reshape(-1, logits.shape[-1])  # (N, V)
    options = (targets, weights, ignore_index, label_smoothing, exclude_true, reduction)
    goal = read_goal("cross_entropy", logits.shape, logits.dtype, *options)
    losses, peak, total = row_losses(x, goal)
    return reduced(losses, logits.shape, reduction), (logits, peak, total, *goal)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    logits, peak, total, *goal = saved
    dx = np.empty(logits.shape, logits.dtype)
    flat = (-1, logits.shape[-1])  # (N, V)
    row_gradients(dx.reshape(flat), logits.reshape(flat), peak, total, Goal(*goal).scaled(dy))
    return (dx,)


def native_forward(logits: Array, *, targets: Any, reduction: str = "mean", **options: Any) -> Result:
    x = logits.reshape(-1, logits.shape[-1])  # (N, V)
    goal = read_goal("cross_entropy", logits.shape, logits.dtype, targets, reduction=reduction, **options)
    if goal.target.ndim == 2:  # distributions
        losses, peak, total = row_losses(x, goal)
    else:
        losses, peak, total = (native.empty((len(x),)) for _ in range(3))
        native.kernels().cross_entropy_forward(losses, peak, total, x, *goal)
    return native_reduced(losses, logits.shape, reduction), (logits, peak, total, *goal)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    logits, peak, total, *goal = saved
    if goal[0].ndim == 2:
        return backward(dy, saved, needs)
    dx = native.empty_like(logits)
    flat = (-1, logits.shape[-1])  # (N, V)
    slope = Goal(*goal).native_scaled(dy)
    native.kernels().cross_entropy_backward(dx.reshape(flat), logits.reshape(flat), peak, total, *slope)
    return (dx,)


def composed(logits: Any, *, targets: Any, reduction: str = "mean", **options: Any) -> Any:
    """The definition, composed from small ops: -Σ t log softmax(z), with a dense target t."""
    goal = read_goal("cross_entropy", logits.shape, logits.dtype, targets, reduction=reduction, **options)
    t = goal.gap * dense(goal.target, logits.shape[-1]) + goal.floor  # [CE.3]
    t = t.astype(logits.dtype).reshape(logits.shape)
    nll = neg(reduce.sum(mul(log_softmax(logits), t), axis=-1))  # [CE.1]
    weighted = mul(nll, goal.scale.reshape(nll.shape))
    return weighted if reduction == "none" else reduce.sum(weighted)


def example(rng: np.random.Generator) -> Iterator[Example]:
    ids = rng.integers(0, 5, size=(2, 3))
    x = normal(rng, 2, 3, 5)
    yield Example((x,), {"targets": ids})
    yield Example((x,), {"targets": ids, "ignore_index": int(ids[0, 1]), "reduction": "sum"})
    yield Example((x,), {"targets": ids, "weights": rng.uniform(size=(2, 3)), "reduction": "none"})
    yield Example((x,), {"targets": rng.dirichlet(np.ones(5), size=(2, 3)), "label_smoothing": 0.1})
    yield Example((x,), {"targets": ids, "label_smoothing": 0.2, "exclude_true": True})
    yield Example((x,), {"targets": ids, "weights": np.zeros((2, 3))})
    yield Example((normal(rng, 7),), {"targets": 3})
    for V in (16, 33, 257):  # whole vectors of the native kernel, and a remainder
        yield Example((normal(rng, 3, V),), {"targets": rng.integers(0, V, size=3), "label_smoothing": 0.1})


def abstract_forward(logits: Array, *, targets: Any, reduction: str = "mean", **options: Any) -> Result:
    goal = abstract_goal(logits.shape, logits.dtype, targets)
    losses, peak, total = (abstract((len(goal.target),), logits.dtype) for _ in range(3))
    loss = abstract((), losses.dtype) if reduction != "none" else losses.reshape(logits.shape[:-1])
    return loss, (logits, peak, total, *goal)


cross_entropy = Op(
    "cross_entropy", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), abstract=abstract_forward,
)  # fmt: skip


def row_losses(x: Array, goal: Goal) -> tuple[Array, Array, Array]:
    """logits (N, V) -> the loss, the maximum and the sum of exponentials of each row, (N,) each"""
    losses, peak, total = (np.empty(len(x), x.dtype) for _ in range(3))
    for rows in row_blocks(len(x), x.shape[1], BLOCK):
        z, m = minus_max(x[rows], axis=1)
        peak[rows] = m[:, 0]
        losses[rows] = -goal.gap * _pick(z, goal.target[rows])
        if goal.floor:
            losses[rows] -= goal.floor * z.sum(axis=1)
        total[rows] = np.exp(z, out=z).sum(axis=1)
    losses += np.log(one_if_empty(total))  # log Σ_j e^z_j - Σ_i t_i z_i                              [CE.2]
    losses[goal.scale == 0] = 0  # even if an ignored row is infinite
    losses *= goal.scale
    return losses, peak, total


def row_gradients(dx: Array, x: Array, peak: Array, total: Array, goal: Goal) -> None:
    """Write the gradients of the logits x (N, V) into dx, which may be x."""
    target, scale, gap, floor = goal
    for rows in row_blocks(len(x), x.shape[1], BLOCK):
        d = dx[rows]
        np.subtract(x[rows], peak[rows, None], out=d)
        np.exp(d, out=d)
        d /= total[rows, None]  # softmax(z)
        if floor:
            d -= floor
        if target.ndim == 1:
            d[np.arange(len(d)), target[rows]] -= gap
        else:
            d -= gap * target[rows]
        d *= scale[rows, None]  # (P - t) · weight / total weight                                     [CE.4]
    dx[scale == 0] = 0


def reduced(losses: Array, shape: Shape, reduction: str) -> Array:
    """Reduce the losses (N,) of the rows of logits of `shape`; they are already scaled."""
    loss: Array = losses.reshape(shape[:-1]) if reduction == "none" else losses.sum()
    return loss


def native_reduced(losses: Array, shape: Shape, reduction: str) -> Array:
    """The same by a kernel."""
    return reduced(losses, shape, reduction) if reduction == "none" else native_sum(losses)


def row_blocks(N: int, V: int, size: int) -> Iterator[slice]:
    """Blocks of rows of about `size` numbers."""
    step = max(1, size // V)
    return (slice(start, start + step) for start in range(0, N, step))


def _pick(z: Array, target: Array) -> Array:
    """Σ_i target_i z_i of each row; a class of mass 0 adds 0 even where z is -inf."""
    if target.ndim == 1:
        return np.take_along_axis(z, target[:, None], axis=1)[:, 0]
    products = np.zeros_like(z)
    np.multiply(z, target, out=products, where=target != 0)
    total: Array = products.sum(axis=1)
    return total
