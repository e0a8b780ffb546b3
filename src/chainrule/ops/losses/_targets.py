"""Targets of a cross-entropy: class ids or distributions, which rows count and how much, and label smoothing."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule import native
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import Input, settled, stays
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.ops.losses._reduction import check_reduction


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
    if weights is None and stays(targets) and targets.shape == shape[:-1]:
        check_reduction(name, reduction)
        return Goal(*_native_targets(settled(targets), ignore_index, reduction), *smoothing)
    target, counted = read_targets(name, targets, shape, dtype, ignore_index)
    scale = _row_scale(name, counted, weights, reduction, shape, dtype)
    return Goal(target, scale, *smoothing)


def abstract_goal(shape: Shape, dtype: Any, targets: Any) -> Goal:
    """The result of `read_goal` on shapes alone."""
    N = math.prod(shape[:-1])
    distributions = np.shape(targets) == shape
    target = abstract((N, shape[-1]), dtype) if distributions else abstract((N,), np.int64)
    return Goal(target, abstract((N,), dtype), 1.0, 0.0)


def _native_targets(targets: Array, ignore_index: int | None, reduction: str) -> tuple[Array, Array]:
    """Targets and weights of all rows by a kernel, to the same bits; ids are checked by the kernel that uses them."""
    ids = targets.reshape(-1)
    target, scale = native.empty(ids.shape, np.int64), native.empty(ids.shape)
    native.kernels().cross_entropy_targets(target, scale, ids, ignore_index, reduction == "mean")
    return target, scale


def diagonal_targets(targets: Any, ignore_index: int) -> Any:
    """Targets (N,) of a matrix of scores whose right answers are on its diagonal: i in row i, unless it is ignored"""
    if not isinstance(targets, Input):
        return np.where(np.asarray(targets) == ignore_index, ignore_index, np.arange(len(targets)))
    own = native.empty(targets.shape, np.int64)
    native.kernels().diagonal_targets(own, targets.values, ignore_index)
    return Input(own)  # filled anew by each replay


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


def smooth_labels(targets: Any, V: int, label_smoothing: float, *, exclude_true: bool = False) -> Array:
    """The target distributions of label smoothing: class ids (...) or distributions (..., V) -> (..., V).

    The fraction ε of the mass is spread evenly over all V classes, or with `exclude_true` over the V-1 wrong ones.

    >>> import chainrule as cr
    >>> cr.ops.smooth_labels(1, 4, 0.2)
    array([0.05, 0.85, 0.05, 0.05])
    """
    gap, floor = _smoothing(label_smoothing, exclude_true, V)
    return gap * dense(np.asarray(targets), V) + floor  # [CE.3]


def dense(targets: Array, V: int) -> Array:
    """Class ids (...) as distributions (..., V); distributions as they are."""
    return np.eye(V)[targets] if targets.dtype.kind in "iu" else targets


def _smoothing(epsilon: float, exclude_true: bool, V: int) -> tuple[float, float]:
    """(gap, floor) of the target t = gap · onehot + floor."""
    if not 0 <= epsilon < 1:
        raise ConfigError(f"label_smoothing: got {epsilon} (must be at least 0 and below 1)")
    floor = epsilon / max(1, V - exclude_true)
    return 1 - V * floor, floor  # so that the sum is 1
