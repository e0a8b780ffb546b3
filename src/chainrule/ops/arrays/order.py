"""Elements by index along an axis, and in order.        Derivations: docs/derivations/order.md

Sorting chooses an order and moves the numbers there; its gradient moves them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.autograd import Example, Op, Tensor
from chainrule.autograd.call import short
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import ShapeError
from chainrule.ops._composition import Composition, like, plain
from chainrule.ops._util import check_axis, normal


def take_forward(x: Array, *, ids: Any, axis: int = -1) -> Result:
    """y[..., i, ...] = x[..., ids[..., i, ...], ...] along `axis`; `ids` has as many axes as x, others broadcast

    x (..., n, ...), ids (..., k, ...) -> y (..., k, ...)
    """
    axis = check_axis("take_along_axis", axis, x.shape)
    ids = np.array(ids)
    if ids.dtype.kind not in "iu":
        raise ShapeError(f"take_along_axis: ids are {ids.dtype} (must be integers)")
    if ids.ndim != x.ndim:
        raise ShapeError(f"take_along_axis: ids are {ids.shape}, x is {x.shape} (must have as many axes)")
    size = x.shape[axis]
    if ids.size and (ids.min() < -size or ids.max() >= size):
        wrong = ids.max() if ids.max() >= size else ids.min()
        raise ShapeError(
            f"take_along_axis: id {wrong} along axis {axis} of shape {x.shape} (must be below {size})"
        )
    return np.take_along_axis(x, ids, axis), (ids, axis, x.shape)


def take_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    ids, axis, shape = saved
    dx = np.zeros(shape, dy.dtype)
    places = list(np.ogrid[tuple(slice(n) for n in shape)])  # of the other axes; sizes of 1 broadcast
    places[axis] = ids
    np.add.at(dx, tuple(places), dy)  # forward was: y[i] = x[ids[i]], elements may repeat          [OR.1]
    return (dx,)


def take_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 3, 4),), {"ids": rng.integers(0, 4, size=(3, 2))})
    yield Example((normal(rng, 2, 3, 4),), {"ids": rng.integers(0, 3, size=(2, 5, 4)), "axis": 1})
    yield Example((normal(rng, 7),), {"ids": [6, 0, -1], "axis": 0})
    yield Example((normal(rng, 3, 4),), {"ids": [[2, 0, 2]]})
    yield Example((normal(rng, 1, 4),), {"ids": rng.integers(0, 4, size=(3, 2))})


take_along_axis = Op("take_along_axis", take_forward, take_backward, take_example, integers=True)


@Composition
def argsort(x: Tensor, *, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices that put x in order along `axis`; equal values keep their order.

    x (..., n, ...) -> (..., n, ...)
    """
    axis = check_axis("argsort", axis, x.shape)
    values = plain(x)
    if not descending:
        return like(x, np.argsort(values, axis=axis, kind="stable"))
    # From the end backwards, so that equal values keep their order.
    last = values.shape[axis] - 1
    return like(x, np.flip(last - np.argsort(np.flip(values, axis), axis=axis, kind="stable"), axis))


@Composition
def sort(x: Tensor, *, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The values in order along `axis`, and the indices they come from; equal values keep their order.

    x (..., n, ...) -> values (..., n, ...), indices (..., n, ...)

    >>> import chainrule as cr
    >>> values, ids = cr.ops.sort(cr.Tensor([3.0, 1.0, 2.0]))
    >>> ids.tolist()
    [1, 2, 0]
    """
    ids = argsort(x, axis=axis, descending=descending)
    return take_along_axis(x, ids=ids, axis=axis), ids


@Composition
def topk(x: Tensor, k: int, *, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The `k` largest values along `axis`, largest first, and their indices.

    x (..., n, ...) -> values (..., k, ...), indices (..., k, ...)
    """
    at = check_axis("topk", axis, x.shape)
    if not isinstance(k, int | np.integer) or not 0 <= k <= x.shape[at]:
        raise ShapeError(
            f"topk: k is {short(k)} along axis {axis} of shape {x.shape} (must be from 0 to {x.shape[at]})"
        )
    ids = argsort(x, axis=at, descending=True)[(slice(None),) * at + (slice(k),)]
    return take_along_axis(x, ids=ids, axis=at), ids


@Composition
def argmax(x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along `axis`, or in the flattened x; the first of equal ones.

    x (..., n, ...) -> (..., ...), or () of the flattened x
    """
    return _extreme("argmax", np.argmax, x, axis, keepdims)


@Composition
def argmin(x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along `axis`, or in the flattened x; the first of equal ones.

    x (..., n, ...) -> (..., ...), or () of the flattened x
    """
    return _extreme("argmin", np.argmin, x, axis, keepdims)


def _extreme(name: str, choose: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is not None:
        check_axis(name, axis, x.shape)
    if not (x.size if axis is None else x.shape[axis]):
        raise ShapeError(f"{name}: x has shape {x.shape} (must have an element to choose)")
    return like(x, np.asarray(choose(plain(x), axis=axis, keepdims=keepdims)))
