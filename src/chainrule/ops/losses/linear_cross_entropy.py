"""Output layer and cross-entropy, fused.        Derivation: docs/derivations/linear_cross_entropy.md

    z = x Wᵀ,   loss = log Σ_j e^z_j - Σ_i t_i z_i,   dx = dz W,   dW = dzᵀ x

The logits are the largest array of a language model, V/C times as large as the activations they come from. Beyond a
limit they exist for one chunk of rows at a time only, and so do their gradients. Then the loss is computed in backward,
together with its gradients, from the same logits; if it is read before, the logits are computed twice.

A few rows of W may be given apart: if only they learn, no gradient of W as a whole is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op, ValueAndGrad
from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape, Work
from chainrule.errors import ShapeError
from chainrule.ops._util import native_sum, normal, product_into, rows, times
from chainrule.ops.arrays.indexing import check_placed, check_rows, put_rows, with_rows
from chainrule.ops.losses._own_rows import native_own_gradient, own_gradient, without_own
from chainrule.ops.losses._targets import Goal, abstract_goal, read_goal
from chainrule.ops.losses.cross_entropy import (
    cross_entropy,
    native_reduced,
    reduced,
    row_gradients,
    row_losses,
)
from chainrule.ops.neural.linear import linear

NAME = "linear_cross_entropy"
CHUNK = 1 << 23  # logits, or gradients of them, at a time: 32 MB in float32
ROWS = 512  # at a time even if they have more than CHUNK logits, as long as those are fewer than the weights
LINE = 16  # numbers in a line of the cache
PANEL = 32  # rows, or columns of the kernel's logits
KEEP = CHUNK  # up to so many logits are kept for backward; more are recomputed


def forward(
    x: Array,
    W: Array,
    own: Array | None = None,
    *,
    targets: Any,
    row_ids: Any = None,
    placed: bool = False,
    ignore_index: int | None = None,
    weights: Any = None,
    label_smoothing: float = 0.0,
    exclude_true: bool = False,
    reduction: str = "mean",
) -> Result:
    """The cross-entropy of the logits x Wᵀ, in a fraction of their memory.

    x (..., C), W (V, C), targets (...) or (..., V); the rest as in `cross_entropy`. With `own` (n, C) these stand
    in the places `row_ids` (n,) of W, and are there already if they are `placed`.
    """
    shape, W, ids = _read(x, W, own, row_ids, placed)
    options = (targets, weights, ignore_index, label_smoothing, exclude_true, reduction)
    goal = read_goal(NAME, shape, x.dtype, *options)
    X = rows(x)  # (N, C)
    losses, peak, total = (np.empty(len(X), x.dtype) for _ in range(3))
    logits = np.empty((len(X), len(W)), x.dtype) if _kept(shape) else None
    for chunk in _chunks(len(X), *W.shape):
        z = times(X[chunk], W.T)
        if logits is not None:
            logits[chunk] = z
        losses[chunk], peak[chunk], total[chunk] = row_losses(z, goal.rows(chunk))
    return reduced(losses, shape, reduction), (x, W, ids, logits, peak, total, *goal)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, W, ids, logits, peak, total, *constants = saved
    goal = Goal(*constants).scaled(dy)
    X = rows(x)  # (N, C)
    dX = np.empty_like(X) if needs[0] else None
    dW = np.zeros_like(W) if needs[1] else None
    for chunk in _chunks(len(X), *W.shape):
        z = times(X[chunk], W.T) if logits is None else logits[chunk]
        dz = np.empty_like(z)
        row_gradients(dz, z, peak[chunk], total[chunk], goal.rows(chunk))  # [LC.1]
        if dX is not None:
            dX[chunk] = times(dz, W)  # forward was: z = X Wᵀ                                          [LC.2]
        if dW is not None:
            dW += times(dz.T, X[chunk])  # [LC.3]
    d_own = own_gradient(times, X, W, ids, peak, total, goal) if needs[2] else None
    return None if dX is None else dX.reshape(x.shape), without_own(dW, ids), d_own


def native_forward(
    x: Array, W: Array, own: Array | None = None, *, row_ids: Any = None, placed: bool = False, **options: Any
) -> Result:
    shape, W, ids = _read(x, W, own, row_ids, placed)
    goal = read_goal(NAME, shape, x.dtype, **options)
    if goal.target.ndim == 2:  # distributions: the kernel takes ids only
        return forward(x, W, own, row_ids=row_ids, placed=placed, **options)
    X = rows(x)  # (N, C)
    losses, peak, total = (native.empty((len(X),)) for _ in range(3))
    logits = native.matmul(X, W.T, precision=mode.precision) if _kept(shape) else None
    if logits is None:
        native.kernels().linear_cross_entropy_forward(losses, peak, total, X, W, *goal, *_cut(X, W))
    else:
        native.kernels().cross_entropy_forward(losses, peak, total, logits, *goal)
    loss = native_reduced(losses, shape, options.get("reduction", "mean"))
    return loss, (x, W, ids, logits, peak, total, *goal)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, W, ids, logits, peak, total, *constants = saved
    if constants[0].ndim == 2:
        return backward(dy, saved, needs)
    goal = Goal(*constants).native_scaled(dy)
    X = rows(x)  # (N, C)
    dW, adds = _place_of(W, needs[1], ids)
    if logits is None:
        dX = native.empty_like(X) if needs[0] else None
        native.kernels().linear_cross_entropy_backward(dX, dW, adds, X, W, peak, total, *goal, *_cut(X, W))
    else:
        dz = native.empty_like(logits)
        native.kernels().cross_entropy_backward(dz, logits, peak, total, *goal)
        dX = native.matmul(dz, W, precision=mode.precision) if needs[0] else None
        if dW is not None:
            native.matmul(dz.T, X, out=dW, accumulate=adds, precision=mode.precision)
    d_own = native_own_gradient(_product, X, W, ids, peak, total, goal) if needs[2] else None
    return None if dX is None else dX.reshape(x.shape), without_own(dW, ids), d_own


def prepare(
    x: Array, W: Array, own: Array | None = None, *, row_ids: Any = None, placed: bool = False, **options: Any
) -> Saved | None:
    """What `value_and_grad` needs; None for logits that are kept, and for a loss of each row."""
    shape, W, ids = _read(x, W, own, row_ids, placed)
    if options.get("reduction") == "none" or _kept(shape):
        return None
    return (x, W, ids, *read_goal(NAME, shape, x.dtype, **options))


def value_and_grad(dy: Array | None, saved: Saved, needs: Needs) -> tuple[Array, Grads]:
    """The loss and the gradients of each chunk from the same logits."""
    x, W, ids, *constants = saved
    goal = Goal(*constants)
    slope = None if dy is None else goal.scaled(dy)
    X = rows(x)  # (N, C)
    losses, peak, total = (np.empty(len(X), x.dtype) for _ in range(3))
    dX, dW = np.empty_like(X) if needs[0] else None, np.zeros_like(W) if needs[1] else None
    for chunk in _chunks(len(X), *W.shape):
        z = times(X[chunk], W.T)
        losses[chunk], peak[chunk], total[chunk] = row_losses(z, goal.rows(chunk))
        if slope is not None:
            row_gradients(z, z, peak[chunk], total[chunk], slope.rows(chunk))  # [LC.1]
        if dX is not None:
            dX[chunk] = times(z, W)  # [LC.2]
        if dW is not None:
            dW += times(z.T, X[chunk])  # [LC.3]
    d_own = own_gradient(times, X, W, ids, peak, total, slope) if slope and needs[2] else None
    return losses.sum(), (None if dX is None else dX.reshape(x.shape), without_own(dW, ids), d_own)


def native_value_and_grad(dy: Array | None, saved: Saved, needs: Needs) -> tuple[Array, Grads]:
    x, W, ids, *constants = saved
    goal = Goal(*constants)
    if goal.target.ndim == 2:
        return value_and_grad(dy, saved, needs)
    X = rows(x)  # (N, C)
    losses, peak, total = (native.empty((len(X),)) for _ in range(3))
    dX, (dW, adds) = native.empty_like(X) if needs[0] else None, _place_of(W, needs[1], ids)
    slope = goal if dy is None else goal.native_scaled(dy)
    gradients = () if dy is None else (dX, dW, adds, slope.scale)
    native.kernels().linear_cross_entropy_forward(losses, peak, total, X, W, *goal, *_cut(X, W), *gradients)
    d_own = native_own_gradient(_product, X, W, ids, peak, total, slope) if needs[2] else None
    return native_sum(losses), (None if dX is None else dX.reshape(x.shape), without_own(dW, ids), d_own)


def _read(
    x: Array, W: Array, own: Array | None, row_ids: Any, placed: bool
) -> tuple[Shape, Array, Array | None]:
    """The shape of the logits, W with the rows in their places, and these places."""
    if own is None:
        return _logits_shape(x, W), W, None
    ids = check_rows(NAME, W, own, row_ids)
    whole = check_placed(NAME, W, own, ids) if placed else with_rows(W, own, ids)
    return _logits_shape(x, W), whole, ids


def _place_of(W: Array, need: Any, ids: Array | None) -> tuple[Array | None, bool]:
    """Where the gradient of W is summed, if it is needed, and whether to add to what is there.

    That of rows of their own is taken out of the sum: it is not in the flat block.
    """
    return product_into(need if ids is None else True, W) if need else (None, False)


def _product(a: Array, b: Array) -> Array:
    return native.matmul(a, b, precision=mode.precision)


def _cut(X: Array, W: Array) -> tuple[int, int]:
    """For the kernels: rows per chunk, and the precision."""
    return chunk_rows(len(X), *W.shape), native.PRECISIONS.index(mode.precision)


def _kept(shape: Shape) -> bool:
    return math.prod(shape) <= KEEP


def chunk_rows(N: int, V: int, C: int) -> int:
    """Rows per chunk: equal ones, as each reads all of W and adds to all of dW; whole panels if there are several."""
    most = max(1, CHUNK // V, min(ROWS, C))
    even = -(-N // (-(-N // most) or 1)) or 1
    return min(most, -(-even // PANEL) * PANEL) if even > PANEL else even


def held_logits(N: int, V: int, C: int) -> int:
    """Numbers that the kernels hold at a time: the columns of a chunk, an odd number of cache lines apart."""
    return V * (-(-min(chunk_rows(N, V, C), N) // LINE) * LINE | LINE)


def _chunks(N: int, V: int, C: int) -> Iterator[slice]:
    step = chunk_rows(N, V, C)
    return (slice(start, start + step) for start in range(0, N, step))


def _logits_shape(x: Array, W: Array) -> Shape:
    if W.ndim != 2 or x.ndim < 1 or x.shape[-1] != W.shape[1] or not W.size:
        raise ShapeError(f"{NAME}: x is {x.shape}, W is {W.shape} (must be (..., C) and (V, C))")
    return (*x.shape[:-1], W.shape[0])


def composed(
    x: Any, W: Any, own: Any = None, *, row_ids: Any = None, placed: bool = False, **constants: Any
) -> Any:
    matrix = W if own is None else put_rows(W, own, ids=row_ids, placed=placed)
    return cross_entropy(linear(x, matrix), **constants)


def example(rng: np.random.Generator) -> Iterator[Example]:
    ids = rng.integers(0, 5, size=(2, 3))
    x, W = normal(rng, 2, 3, 4), normal(rng, 5, 4)
    yield Example((x, W), {"targets": ids})
    yield Example((x, W), {"targets": ids, "ignore_index": int(ids[0, 1]), "reduction": "sum"})
    yield Example((x, W), {"targets": ids, "weights": rng.uniform(size=(2, 3)), "reduction": "none"})
    yield Example((x, W), {"targets": ids, "label_smoothing": 0.2, "exclude_true": True})
    yield Example((x, W), {"targets": rng.dirichlet(np.ones(5), size=(2, 3)), "label_smoothing": 0.1})
    yield Example((normal(rng, 7), normal(rng, 1, 7)), {"targets": 0})
    # Rows of their own that W holds already, as while a model learns them; the battery then moves them.
    yield Example((x, W, W[[4, 1]]), {"targets": ids, "row_ids": [4, 1], "label_smoothing": 0.1})
    weights = {"weights": rng.uniform(size=(2, 3)), "reduction": "none"}
    yield Example((x, W, W[[3]]), {"targets": ids, "row_ids": [3]} | weights)
    for V, C in ((16, 7), (33, 16), (65, 33)):  # whole vectors of the native kernels, and a remainder
        yield Example((normal(rng, 7, C), normal(rng, V, C)), {"targets": rng.integers(0, V, size=7)})


def abstract_forward(
    x: Array, W: Array, own: Array | None = None, *, targets: Any, reduction: str = "mean", **options: Any
) -> Result:
    shape = _logits_shape(x, W)
    goal = abstract_goal(shape, x.dtype, targets)
    ids = None if own is None else abstract(own.shape[:1], np.intp)
    if reduction != "none" and not _kept(shape):
        return abstract((), x.dtype), (x, W, ids, *goal)  # deferred
    losses, peak, total = (abstract((len(goal.target),), x.dtype) for _ in range(3))
    logits = abstract((len(losses), len(W)), x.dtype) if _kept(shape) else None
    loss = abstract((), losses.dtype) if reduction != "none" else losses.reshape(shape[:-1])
    return loss, (x, W, ids, logits, peak, total, *goal)


def cost(needs: Needs, x: Array, W: Array, own: Array | None = None, **constants: Any) -> Work:
    """Value and gradients together, as in training; a loss read before backward costs its forward pass again."""
    whole: Work = linear.cost(needs, x, W)  # type: ignore[misc]
    if own is None or not needs[2]:
        return whole
    return whole._replace(backward=whole.backward + 4 * rows(x).shape[0] * own.size)


linear_cross_entropy = Op(
    NAME, forward, backward, example,
    composed=composed, native=(native_forward, native_backward),
    value_and_grad=ValueAndGrad(prepare, value_and_grad, native_value_and_grad), abstract=abstract_forward, cost=cost,
)  # fmt: skip
