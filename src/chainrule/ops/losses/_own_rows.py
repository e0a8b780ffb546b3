"""Gradients of a few rows of an output matrix that are given apart from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chainrule import native
from chainrule.autograd.recording import fail
from chainrule.autograd.types import Array
from chainrule.ops.losses._targets import Goal
from chainrule.ops.losses.cross_entropy import row_gradients


def own_gradient(
    product: Callable[[Array, Array], Array],
    X: Array,
    W: Array,
    ids: Array | None,
    peak: Array,
    total: Array,
    goal: Goal,
) -> Array | None:
    """X (N, C), W (V, C) -> the gradient of the rows `ids` (n,) of W: columns of the logits are enough for it"""
    if ids is None:
        return None
    target = goal.target
    own = target[:, ids] if target.ndim == 2 else (target[:, None] == ids).astype(X.dtype)  # (N, n)
    dz = product(X, W[ids].T)
    row_gradients(dz, dz, peak, total, goal._replace(target=own))  # the columns `ids` of              [LC.1]
    return product(dz.T, X)  # the rows `ids` of                                                      [LC.3]


def native_own_gradient(
    product: Callable[[Array, Array], Array],
    X: Array,
    W: Array,
    ids: Array | None,
    peak: Array,
    total: Array,
    goal: Goal,
) -> Array | None:
    """The same by kernels, for targets that are ids. Those of other rows stand in one more column, which is dropped."""
    if ids is None:
        return None
    n, C = len(ids), W.shape[1]
    own = native.cleared((n + 1, C))
    native.kernels().gather_rows(own[:n], W, ids)
    target = native.empty(goal.target.shape, np.int64)
    native.kernels().targets_among(target, goal.target, ids)
    dz = product(X, own.T)  # (N, n + 1)
    native.kernels().cross_entropy_backward(dz, dz, peak, total, *goal._replace(target=target))  # [LC.1]
    return product(dz[:, :n].T, X)  #                                                              [LC.3]


def without_own(dW: Array | None, ids: Array | None) -> Array | None:
    """The gradient of W, of which the rows `ids` are not a part."""
    if dW is not None and ids is not None:
        fail("rows of a gradient that NumPy takes out")
        dW[ids] = 0
    return dW
