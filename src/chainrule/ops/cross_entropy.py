"""Softmax and cross-entropy in one, from logits.        Derivation: docs/derivations/cross_entropy.md

    loss = log Σ_j e^z_j - Σ_i t_i z_i,   dz = softmax(z) - t           R-098 .. R-101, R-103, R-106 .. R-108,
                R-111, R-344 (seed 001; seed 004 §3.10, §12.4.2, §13.9.1, §13.9.2; C-08, C-10, C-24)

Saved are the logits with two numbers per row: neither probabilities nor one-hot targets are ever stored. Both
passes walk over blocks of rows that fit in the cache, so the gradient itself is the only new (N, V) array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.autograd import Example, Op
from chainrule.autograd.types import Array, Grads, Needs, Saved
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.ops import reduce
from chainrule.ops._reduction import check_reduction
from chainrule.ops._util import normal
from chainrule.ops.elementwise import mul, neg
from chainrule.ops.softmax import log_softmax, minus_max, one_if_empty

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
) -> tuple[Array, Saved]:
    """How much softmax(logits) is surprised by the targets, in nats.

    logits (..., V); targets are class ids (...) or distributions (..., V). Positions with id `ignore_index`
    or with a weight of 0, in `weights` (...), contribute neither value nor gradient. `reduction` is "mean"
    (by weight, over the counted positions; 0 if there are none), "sum" or "none". For `label_smoothing` see
    `smooth_labels`.
    """
    x = logits.reshape(-1, logits.shape[-1])  # (N, V)
    target, counted = read_targets("cross_entropy", targets, logits, ignore_index)
    scale = _row_scale(counted, weights, reduction, logits)
    gap, floor = _smoothing(label_smoothing, exclude_true, x.shape[1])
    peak, total, nll = np.empty((3, len(x)), x.dtype)
    for rows in _blocks(x):
        z, m = minus_max(x[rows], axis=1)
        peak[rows] = m[:, 0]
        nll[rows] = -gap * _pick(z, target[rows])
        if floor:
            nll[rows] -= floor * z.sum(axis=1)
        total[rows] = np.exp(z, out=z).sum(axis=1)
    nll += np.log(one_if_empty(total))  # log Σ_j e^z_j - Σ_i t_i z_i                                 [CE.2]
    nll[scale == 0] = 0  # also where a row that does not count is infinite
    nll *= scale
    loss = nll.reshape(logits.shape[:-1]) if reduction == "none" else nll.sum()
    return loss, (logits, target, peak, total, scale, gap, floor)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    logits, target, peak, total, scale, gap, floor = saved
    x = logits.reshape(-1, logits.shape[-1])  # (N, V)
    scale = scale * dy.reshape(-1)  # dy is one number, or one per row
    dx = np.empty_like(x)
    for rows in _blocks(x):
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
    return (dx.reshape(logits.shape),)


def composed(
    logits: Any,
    *,
    targets: Any,
    weights: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    exclude_true: bool = False,
    reduction: str = "mean",
) -> Any:
    """The definition written out from small ops: -Σ t log softmax(z), with a dense target t."""
    target, counted = read_targets("cross_entropy", targets, logits, ignore_index)
    scale = _row_scale(counted, weights, reduction, logits).reshape(logits.shape[:-1])
    t = smooth_labels(target, logits.shape[-1], label_smoothing, exclude_true=exclude_true)
    t = t.astype(logits.dtype).reshape(logits.shape)
    nll = neg(reduce.sum(mul(log_softmax(logits), t), axis=-1))  # [CE.1]
    weighted = mul(nll, scale)
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


cross_entropy = Op("cross_entropy", forward, backward, example, composed=composed)


def smooth_labels(targets: Any, V: int, label_smoothing: float, *, exclude_true: bool = False) -> Array:
    """The target distributions of label smoothing: class ids (...) or distributions (..., V) -> (..., V).

    A share ε of the mass is spread evenly over all V classes, or with `exclude_true` over the V-1 wrong ones.

    >>> import chainrule as cr
    >>> cr.ops.smooth_labels(1, 4, 0.2)
    array([0.05, 0.85, 0.05, 0.05])
    """
    targets = np.asarray(targets)
    dense: Array = np.eye(V)[targets] if targets.dtype.kind in "iu" else targets
    gap, floor = _smoothing(label_smoothing, exclude_true, V)
    return gap * dense + floor  # [CE.3]


def _smoothing(epsilon: float, exclude_true: bool, V: int) -> tuple[float, float]:
    """(gap, floor) of the target t = gap · onehot + floor."""
    if not 0 <= epsilon < 1:
        raise ConfigError(f"label_smoothing: got {epsilon} (must be at least 0 and below 1)")
    floor = epsilon / max(1, V - exclude_true)
    return 1 - V * floor, floor  # so that the masses add up to 1


def read_targets(
    name: str, targets: Any, logits: Any, ignore_index: int | None = None
) -> tuple[Array, Array]:
    """Checked targets of logits (..., V): ids (N,) or distributions (N, V); and which of the N rows count."""
    targets, V = np.asarray(targets), logits.shape[-1]
    if targets.dtype.kind not in "iuf":
        raise DataError(f"{name}: targets are {targets.dtype} (must be integer ids or float distributions)")
    kind, shape = ("distributions", logits.shape) if targets.dtype.kind == "f" else ("ids", logits.shape[:-1])
    if targets.shape != shape:
        raise ShapeError(
            f"{name}: target {kind} have shape {targets.shape}, logits {logits.shape} (must be {shape})"
        )
    if kind == "distributions":
        # A copy: backward needs them as they are now.
        return _read_distributions(name, targets.reshape(-1, V).astype(logits.dtype))
    ids = targets.reshape(-1)
    counted = np.ones(ids.shape, bool) if ignore_index is None else ids != ignore_index
    wrong = counted & ((ids < 0) | (ids >= V))
    if wrong.any():
        i = int(wrong.argmax())
        raise DataError(f"{name}: target {ids[i]} at position {i}, V is {V} (must be from 0 to {V - 1})")
    return np.where(counted, ids, 0), counted


def _read_distributions(name: str, targets: Array) -> tuple[Array, Array]:
    total = targets.sum(axis=1)
    wrong = (targets < 0).any(axis=1) | ~(np.abs(total - 1) < 1e-3)  # the second catches NaN too
    if wrong.any():
        i = int(wrong.argmax())
        raise DataError(
            f"{name}: target row {i} has minimum {targets[i].min():g} and sum {total[i]:g} "
            "(must be a distribution: not negative, sum 1)"
        )
    return targets, np.ones(len(targets), bool)


def _row_scale(counted: Array, weights: Any, reduction: str, logits: Any) -> Array:
    """What the loss of each row is multiplied by: its weight, divided by the total weight for the mean."""
    check_reduction("cross_entropy", reduction)
    scale = counted.astype(logits.dtype)
    if weights is not None:
        weights = np.asarray(weights)
        if weights.shape != logits.shape[:-1]:
            raise ShapeError(
                f"cross_entropy: weights have shape {weights.shape}, logits {logits.shape} "
                f"(must be {logits.shape[:-1]})"
            )
        scale *= weights.reshape(-1)
    if reduction == "mean":
        if (scale < 0).any():
            raise DataError(f"cross_entropy: weight {scale.min():g} (must not be negative for the mean)")
        scale /= scale.sum() or 1  # nothing counted: every weight is 0, so loss and gradient are
    return scale


def _pick(z: Array, target: Array) -> Array:
    """Σ_i target_i z_i of each row; a class of mass 0 adds 0 even where z is -inf."""
    if target.ndim == 1:
        return np.take_along_axis(z, target[:, None], axis=1)[:, 0]
    products = np.zeros_like(z)
    np.multiply(z, target, out=products, where=target != 0)
    total: Array = products.sum(axis=1)
    return total


def _blocks(x: Array) -> Iterator[slice]:
    step = max(1, BLOCK // x.shape[1])
    return (slice(start, start + step) for start in range(0, len(x), step))
