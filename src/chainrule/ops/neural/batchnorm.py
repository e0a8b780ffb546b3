"""Batch normalization over all axes but the last.        Derivation: docs/derivations/batchnorm.md

    y = x̂ γ + β,   x̂ = (x - μ) r,   r = 1/√(σ² + ε),   μ and σ² of each feature over the N rows of the batch

Training uses `batchnorm` and keeps running averages of its statistics (`update_running`). With them `batchnorm_eval`
normalizes a single example, and `fold_batchnorm` folds the layer into the linear one before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op, Tensor
from chainrule.autograd.mode import mode
from chainrule.autograd.recording import empty, settled
from chainrule.autograd.types import Array, Grads, Needs, Result, Results, Saved, Shape
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.ops._composition import Composition
from chainrule.ops._util import centered, check_features, examples, normal, rstd_of, shapes
from chainrule.ops.arrays import reduce
from chainrule.ops.arrays.elementwise import add, div, mul, sqrt, sub
from chainrule.ops.arrays.shape import concat, reshape, transpose
from chainrule.ops.neural.layernorm import layernorm


def batchnorm_forward(x: Array, gamma: Array, beta: Array, *, eps: float = 1e-5, rows: Any = None) -> Results:
    """Normalize each feature to mean 0 and variance 1 over the batch, scale and shift; also return the statistics.

    x (..., C), gamma (C,), beta (C,) -> y (..., C), mean (C,), var (C,); the variance is biased (1/N). With `rows`, an
    array of one integer, the batch are the first N = rows[0] rows of x, and y is 0 in the others.
    """
    count = _check_batch(x, gamma, beta, rows)
    of_batch, N = x.reshape(-1, x.shape[-1]), _counted(x, count)  # (R, C)
    found, mean, var = centered(of_batch[:N], 0)  #                                                   [BN.10]
    mean, var = mean[0], var[0]
    rstd = rstd_of(var, eps)  # (C,)                                                                  [BN.1]
    found *= rstd * gamma
    found += beta  # [BN.2]
    return (_whole(found, x.shape), mean, var), (x, gamma, mean, rstd, count)


def batchnorm_backward(dy: tuple[Array, Array, Array], saved: Saved, needs: Needs) -> Grads:
    """Includes the gradients through the returned statistics."""
    x, gamma, mean, rstd, count = saved
    N, C = _counted(x, count), x.shape[-1]
    g, dmean, dvar = dy[0].reshape(-1, C)[:N], dy[1], dy[2]
    xhat = x.reshape(-1, C)[:N] - mean
    xhat *= rstd  # forward was: y = xhat * gamma + beta
    dbeta = g.sum(axis=0)  # [BN.3]
    dgamma = (g * xhat).sum(axis=0)  # [BN.4]
    if not needs[0]:
        return None, dgamma, dbeta
    scale = gamma * rstd
    dx = g * scale
    dx -= (scale * dbeta - dmean) / N  # through the mean, which is an output too                     [BN.5]
    xhat *= (scale * dgamma - 2 * dvar / rstd) / N  # through the variance, likewise                  [BN.6]
    dx -= xhat
    return _whole(dx, x.shape), dgamma, dbeta


def batchnorm_native_forward(
    x: Array, gamma: Array, beta: Array, *, eps: float = 1e-5, rows: Any = None
) -> Results:
    count = _check_batch(x, gamma, beta, rows)
    y = native.empty_like(x)
    mean, var, rstd = empty((3, *gamma.shape), np.float32)
    native.kernels().batchnorm_forward(y, mean, var, rstd, x, gamma, beta, eps, count)
    return (y, mean, var), (x, gamma, mean, rstd, count)


def batchnorm_native_backward(dy: tuple[Array, Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, gamma, mean, rstd, count = saved
    dx = native.empty_like(x) if needs[0] else None
    parameters = empty((2, *gamma.shape), np.float32)  # dgamma and dbeta, both needed for dx
    native.kernels().batchnorm_backward(dx, parameters, x, gamma, mean, rstd, *dy, count)
    return dx, parameters[0], parameters[1]


def _check_batch(x: Array, gamma: Array, beta: Array, rows: Any) -> Array | None:
    """How many rows are the batch (1,), if not all are."""
    check_features("batchnorm", x, gamma=gamma, beta=beta)
    R = math.prod(x.shape[:-1])
    if not R:
        raise DataError(f"batchnorm: x has shape {x.shape} (statistics need at least one row)")
    if rows is None:
        return None
    count = settled(rows)
    if count.shape != (1,) or count.dtype.kind not in "iu":
        rule = "must be one integer, of shape (1,)"
        raise ConfigError(f"batchnorm: rows have shape {count.shape} and dtype {count.dtype} ({rule})")
    if not 1 <= count[0] <= R:
        raise DataError(f"batchnorm: rows is {count[0]} (must be from 1 to {R})")
    return count.astype(np.int64, copy=False)


def _counted(x: Array, count: Array | None) -> int:
    return math.prod(x.shape[:-1]) if count is None else int(count[0])


def _whole(of_batch: Array, shape: Shape) -> Array:
    """The rows of the batch (N, C), and zeros for those after them."""
    if of_batch.size == math.prod(shape):
        return of_batch.reshape(shape)
    y = np.zeros((math.prod(shape[:-1]), shape[-1]), of_batch.dtype)
    y[: len(of_batch)] = of_batch
    return y.reshape(shape)


def batchnorm_composed(x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, rows: Any = None) -> Any:
    """The composition from small ops."""
    if rows is not None:
        found, C = reshape(x, shape=(-1, x.shape[-1])), x.shape[-1]
        y, mean, var = batchnorm_composed(found[: rows[0]], gamma, beta, eps=eps)
        others = np.zeros((found.shape[0] - rows[0], C), y.dtype)
        return reshape(concat(y, others), shape=x.shape), mean, var
    batch = tuple(range(len(x.shape) - 1))
    mean = reduce.mean(x, axis=batch)
    centered = sub(x, mean)
    var = reduce.mean(mul(centered, centered), axis=batch)
    return add(mul(div(centered, sqrt(add(var, eps))), gamma), beta), mean, var


batchnorm_example = examples(
    shapes((6, 3), (3,), (3,), rows=np.array([4])), shapes((2, 4, 17), (17,), (17,), rows=np.array([8])),
    shapes((6, 3), (3,), (3,)), shapes((2, 3, 5), (5,), (5,), eps=0.1),
    *(shapes((7, C), (C,), (C,)) for C in (1, 16, 33))  # whole vectors of the native kernel, and a remainder
)  # fmt: skip

batchnorm = Op(
    "batchnorm", batchnorm_forward, batchnorm_backward, batchnorm_example,
    composed=batchnorm_composed, native=(batchnorm_native_forward, batchnorm_native_backward),
)  # fmt: skip


def batchnorm_eval_forward(
    x: Array, gamma: Array, beta: Array, *, mean: Array, var: Array, eps: float = 1e-5
) -> Result:
    """Batch normalization with given statistics mean (C,), var (C,): independent of the batch."""
    mean, var = (np.asarray(s, dtype=x.dtype) for s in (mean, var))
    check_features("batchnorm_eval", x, gamma=gamma, beta=beta, mean=mean, var=var)
    rstd = 1 / np.sqrt(var + eps)  # (C,)
    y = x - mean
    y *= rstd * gamma
    y += beta
    return y, (x, gamma, mean, rstd)


def batchnorm_eval_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, gamma, mean, rstd = saved
    batch = tuple(range(x.ndim - 1))
    return (  # the statistics are constants here                                                     [BN.7]
        dy * (gamma * rstd) if needs[0] else None,
        (dy * (x - mean)).sum(axis=batch) * rstd if needs[1] else None,
        dy.sum(axis=batch) if needs[2] else None,
    )


def batchnorm_eval_composed(
    x: Any, gamma: Any, beta: Any, *, mean: Array, var: Array, eps: float = 1e-5
) -> Any:
    """The composition from small ops."""
    return add(mul(div(sub(x, mean), np.sqrt(var + eps)), gamma), beta)


def batchnorm_eval_example(rng: np.random.Generator) -> Iterator[Example]:
    statistics = {"mean": normal(rng, 3), "var": rng.uniform(0.5, 2.0, size=3)}
    yield Example((normal(rng, 4, 3), normal(rng, 3), normal(rng, 3)), statistics)
    yield Example((normal(rng, 2, 1, 3), normal(rng, 3), normal(rng, 3)), {**statistics, "eps": 0.1})
    yield Example((normal(rng, 3), normal(rng, 3), normal(rng, 3)), statistics)


batchnorm_eval = Op(
    "batchnorm_eval", batchnorm_eval_forward, batchnorm_eval_backward, batchnorm_eval_example,
    composed=batchnorm_eval_composed,
)  # fmt: skip


def update_running(
    running_mean: Array,
    running_var: Array,
    mean: Array,
    var: Array,
    *,
    momentum: float = 0.1,
    unbiased_rows: int | None = None,
) -> tuple[Array, Array]:
    """The running (mean, var) after one more batch: r ← (1 - μ) r + μ · statistic of the batch (start: 0, 1).

    The batch variance is biased; `unbiased_rows`, the number of rows of the batch, corrects that.
    """
    if not 0 <= momentum <= 1:
        raise ConfigError(f"batchnorm: momentum is {momentum} (must be from 0 to 1)")
    if unbiased_rows is not None:
        if unbiased_rows < 2:
            raise DataError(f"batchnorm: {unbiased_rows} rows have no unbiased variance (must be at least 2)")
        var = var * (unbiased_rows / (unbiased_rows - 1))
    keep = 1 - momentum
    return keep * running_mean + momentum * mean, keep * running_var + momentum * var  # [BN.8]


def update_running_in_place(
    running_mean: Array, running_var: Array, mean: Array, var: Array, *, momentum: float = 0.1
) -> None:
    """`update_running` in place; for float32 by a kernel, which a replay can call again."""
    arrays = running_mean, running_var, mean, var
    if mode.backend == "native" and native.available() and all(a.dtype == np.float32 for a in arrays):
        for running, seen in ((running_mean, mean), (running_var, var)):
            native.kernels().update_running(running, seen, 1 - momentum, momentum)
    else:
        running_mean[...], running_var[...] = update_running(*arrays, momentum=momentum)


def fold_batchnorm(
    W: Array, b: Array | None, gamma: Array, beta: Array, mean: Array, var: Array, eps: float = 1e-5
) -> tuple[Array, Array]:
    """(W', b') with x W'ᵀ + b' = batchnorm_eval(x Wᵀ + b): the layer folded into the linear one before it.

    W (out, in), everything else (out,); b may be None.
    """
    scale = gamma / np.sqrt(var + eps)  # (out,)
    shift = -mean if b is None else b - mean
    return scale[:, None] * W, scale * shift + beta  # [BN.9]


@Composition
def groupnorm(x: Tensor, gamma: Tensor, beta: Tensor, *, groups: int, eps: float = 1e-5) -> Tensor:
    """Normalize over the positions of one example and the channels of one group; `groups=C` is instance norm.

    x (B, ..., C), gamma (C,), beta (C,) -> y (B, ..., C), a layer norm of each group.
    """
    B, *positions, C = x.shape
    if groups < 1 or C % groups:
        raise ShapeError(f"groupnorm: {C} channels in {groups} groups (must divide)")
    N, size = math.prod(positions), C // groups
    apart = transpose(reshape(x, shape=(B, N, groups, size)), axes=(0, 2, 1, 3))  # (B, G, N, C/G)
    one, zero = np.ones(N * size, x.dtype), np.zeros(N * size, x.dtype)
    xhat = layernorm(reshape(apart, shape=(B, groups, N * size)), one, zero, eps=eps)
    together = transpose(reshape(xhat, shape=(B, groups, N, size)), axes=(0, 2, 1, 3))  # (B, N, G, C/G)
    return add(mul(reshape(together, shape=x.shape), gamma), beta)
