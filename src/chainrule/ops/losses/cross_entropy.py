"""Softmax and cross-entropy, fused, from logits.        Derivation: docs/derivations/cross_entropy.md

    loss = log Σ_j e^z_j - Σ_i t_i z_i,   dz = softmax(z) - t

Saved are the logits and two numbers per row: neither probabilities nor one-hot targets are stored. Both passes work on
blocks of rows that fit in the cache, so the gradient is the only new (N, V) array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import Input
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.ops._util import native_sum, normal
from chainrule.ops.arrays import reduce
from chainrule.ops.arrays.elementwise import mul, neg
from chainrule.ops.losses._reduction import check_reduction
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
    t = goal.gap * _dense(goal.target, logits.shape[-1]) + goal.floor  # [CE.3]
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


def abstract_goal(shape: Shape, dtype: Any, targets: Any) -> Goal:
    """The result of `read_goal` on shapes alone."""
    N = math.prod(shape[:-1])
    dense = np.shape(targets) == shape
    target = abstract((N, shape[-1]), dtype) if dense else abstract((N,), np.int64)
    return Goal(target, abstract((N,), dtype), 1.0, 0.0)


cross_entropy = Op(
    "cross_entropy", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), abstract=abstract_forward,
)  # fmt: skip


class Goal(NamedTuple):
    """The target of each row: gap · target_n + floor, with weight scale_n."""

    target: Array  # ids (N,) or distributions (N, V)
    scale: Array  # (N,)
    gap: float
    floor: float

    def scaled(self, dy: Array) -> Goal:
        """The same targets, each row's scale multiplied by the upstream gradient: one number, or one per row."""
        return self._replace(scale=self.scale * dy.reshape(-1))

    def native_scaled(self, dy: Array) -> Goal:
        """The same by a kernel."""
        scale = native.empty_like(self.scale)
        native.kernels().mul(scale, self.scale, dy.reshape(-1))
        return self._replace(scale=scale)

    def rows(self, chosen: slice) -> Goal:
        return self._replace(target=self.target[chosen], scale=self.scale[chosen])


def read_goal(
    name: str,
    shape: Shape,
    dtype: Any,
    targets: Any,
    weights: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    exclude_true: bool = False,
    reduction: str = "mean",
) -> Goal:
    """The checked targets and weights for logits of this shape and dtype."""
    smoothing = _smoothing(label_smoothing, exclude_true, shape[-1])
    if weights is None and isinstance(targets, Input) and targets.shape == shape[:-1]:
        check_reduction(name, reduction)
        return Goal(*_native_targets(targets.values, ignore_index, reduction), *smoothing)
    target, counted = read_targets(name, targets, shape, dtype, ignore_index)
    scale = _row_scale(name, counted, weights, reduction, shape, dtype)
    return Goal(target, scale, *smoothing)


def _native_targets(targets: Array, ignore_index: int | None, reduction: str) -> tuple[Array, Array]:
    """Targets and weights of all rows by a kernel, to the same bits; ids are checked by the kernel that uses them."""
    ids = targets.reshape(-1)
    target, scale = native.empty(ids.shape, np.int64), native.empty(ids.shape)
    native.kernels().cross_entropy_targets(target, scale, ids, ignore_index, reduction == "mean")
    return target, scale


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


def smooth_labels(targets: Any, V: int, label_smoothing: float, *, exclude_true: bool = False) -> Array:
    """The target distributions of label smoothing: class ids (...) or distributions (..., V) -> (..., V).

    The fraction ε of the mass is spread evenly over all V classes, or with `exclude_true` over the V-1 wrong ones.

    >>> import chainrule as cr
    >>> cr.ops.smooth_labels(1, 4, 0.2)
    array([0.05, 0.85, 0.05, 0.05])
    """
    gap, floor = _smoothing(label_smoothing, exclude_true, V)
    return gap * _dense(np.asarray(targets), V) + floor  # [CE.3]


def _dense(targets: Array, V: int) -> Array:
    """Class ids (...) as distributions (..., V); distributions as they are."""
    return np.eye(V)[targets] if targets.dtype.kind in "iu" else targets


def _smoothing(epsilon: float, exclude_true: bool, V: int) -> tuple[float, float]:
    """(gap, floor) of the target t = gap · onehot + floor."""
    if not 0 <= epsilon < 1:
        raise ConfigError(f"label_smoothing: got {epsilon} (must be at least 0 and below 1)")
    floor = epsilon / max(1, V - exclude_true)
    return 1 - V * floor, floor  # so that the sum is 1


def read_targets(
    name: str, targets: Any, shape: Shape, dtype: Any, ignore_index: int | None = None
) -> tuple[Array, Array]:
    """Checked targets of logits of `shape` (..., V): ids (N,) or distributions (N, V); and the rows that count."""
    targets, V = np.asarray(targets), shape[-1]
    if targets.dtype.kind not in "iuf":
        raise DataError(f"{name}: targets are {targets.dtype} (must be integer ids or float distributions)")
    kind, wanted = ("distributions", shape) if targets.dtype.kind == "f" else ("ids", shape[:-1])
    if targets.shape != wanted:
        raise ShapeError(
            f"{name}: target {kind} have shape {targets.shape}, logits {shape} (must be {wanted})"
        )
    if kind == "distributions":
        # A copy: backward needs the present values.
        return _read_distributions(name, targets.reshape(-1, V).astype(dtype))
    ids = targets.reshape(-1)
    counted = np.ones(ids.shape, bool)
    if ignore_index is None:
        ids = ids.astype(np.int64)  # a copy
    else:
        counted = ids != ignore_index
        ids = np.where(counted, ids, 0).astype(np.int64, copy=False)
    unsigned = ids.view(np.uint64)  # a negative id is a large number
    if unsigned.max(initial=0) >= V:
        i = int((unsigned >= V).argmax())
        raise DataError(f"{name}: target {ids[i]} at position {i}, V is {V} (must be from 0 to {V - 1})")
    return ids, counted


def _read_distributions(name: str, targets: Array) -> tuple[Array, Array]:
    total = targets.sum(axis=1)
    wrong = (targets < 0).any(axis=1) | ~(np.abs(total - 1) < 1e-3)  # the second term also catches NaN
    if wrong.any():
        i = int(wrong.argmax())
        raise DataError(
            f"{name}: target row {i} has minimum {targets[i].min():g} and sum {total[i]:g} "
            "(must be a distribution: not negative, sum 1)"
        )
    return targets, np.ones(len(targets), bool)


def _row_scale(name: str, counted: Array, weights: Any, reduction: str, shape: Shape, dtype: Any) -> Array:
    """The factor of each row's loss: its weight, for the mean divided by the total weight."""
    check_reduction(name, reduction)
    scale = counted.astype(dtype)
    total: Any = np.count_nonzero(counted)
    if weights is not None:
        weights = np.asarray(weights)
        if weights.shape != shape[:-1]:
            raise ShapeError(
                f"{name}: weights have shape {weights.shape}, logits {shape} (must be {shape[:-1]})"
            )
        scale *= weights.reshape(-1)
        total = scale.sum()
    if reduction == "mean":
        if weights is not None and (scale < 0).any():
            raise DataError(f"{name}: weight {scale.min():g} (must not be negative for the mean)")
        scale /= total or 1  # if no row counts, loss and gradient are 0
    return scale


def _pick(z: Array, target: Array) -> Array:
    """Σ_i target_i z_i of each row; a class of mass 0 adds 0 even where z is -inf."""
    if target.ndim == 1:
        return np.take_along_axis(z, target[:, None], axis=1)[:, 0]
    products = np.zeros_like(z)
    np.multiply(z, target, out=products, where=target != 0)
    total: Array = products.sum(axis=1)
    return total
