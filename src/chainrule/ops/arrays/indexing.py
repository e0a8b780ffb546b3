"""Picking elements, rows, and one entry per row.        Derivations: docs/derivations/indexing.md

The gradient of an element goes back to its place; an element read twice gets the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op, Tensor
from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import mode
from chainrule.autograd.recording import assign, contiguous, fail, settled, zeros
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape
from chainrule.errors import DataError, ShapeError
from chainrule.ops._util import normal, rows, summed_into
from chainrule.ops.arrays.elementwise import add, mul
from chainrule.ops.arrays.matmul import matmul
from chainrule.ops.arrays.reduce import sum


def getitem_forward(x: Array, *, index: Any) -> Result:
    """y = x[index], for any index of NumPy: numbers, slices, None, ..., masks, integer arrays

    x (...) -> y (...), of the shape that NumPy gives x[index]
    """
    index = tuple(map(_plain, index)) if isinstance(index, tuple) else _plain(index)
    return x[index], (index, x.shape)


def getitem_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    index, shape = saved
    if _is_integers(index):  # rows of x: the common case, done faster
        return (scatter_add(index, dy, shape),)
    if any(map(_is_integers, index if isinstance(index, tuple) else ())):
        dx = np.zeros(shape, dy.dtype)
        np.add.at(dx, index, dy)  # forward was: y = x[index], elements may repeat                 [IX.2]
        return (dx,)
    dx = zeros(shape, dy.dtype)
    place = dx[index]
    if isinstance(place, np.ndarray) and np.may_share_memory(place, dx):
        assign(place, dy)  # no element is read twice                                              [IX.1]
    else:
        fail("elements that are chosen by a mask")
        dx[index] = dy
    return (dx,)


def _plain(part: Any) -> Any:
    """Lists, tensors and arrays as copies, which the caller cannot change before backward."""
    if isinstance(part, list | Tensor | np.ndarray):
        return np.array(part, dtype=np.intp if isinstance(part, list) and not part else None)
    return part


def _is_integers(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind in "iu"


def getitem_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 3, 4),), {"index": 1})
    yield Example((normal(rng, 3, 7),), {"index": (slice(None, None, 2), slice(6, 0, -3))})
    yield Example((normal(rng, 3, 4),), {"index": (Ellipsis, None, -1)})
    yield Example((normal(rng, 3, 4),), {"index": np.array([[0, 2], [2, -1]])})
    yield Example((normal(rng, 3, 4),), {"index": (np.array([0, 0, 2]), [1, 1, 3])})
    yield Example((normal(rng, 2, 3, 4),), {"index": (slice(None), [1, 1], slice(1, 3))})
    yield Example((normal(rng, 3, 4),), {"index": rng.random((3, 4)) < 0.5})


getitem = Op("getitem", getitem_forward, getitem_backward, getitem_example, integers=True, views=True)


def scatter_add(ids: Array, dy: Array, shape: Shape) -> Array:
    """Zeros of `shape` with dy[i] added to row ids[i], in the order of i: the same bits every time."""
    C = math.prod(shape[1:])
    # In NumPy adding single numbers at a list of places is four times as fast as adding whole rows.
    places = ids.reshape(-1, 1).astype(np.intp) * C + np.arange(C)  # (rows, C)
    dW = np.zeros(shape[0] * C, dy.dtype)
    np.add.at(dW, places.reshape(-1), dy.reshape(-1))
    return dW.reshape(shape)


def embedding_forward(W: Array, *, ids: Any) -> Result:
    """W (V, C), ids (...) of integers -> y (..., C), row ids[i] of W for each i: one_hot(ids, V) @ W"""
    ids = _row_ids("embedding", W, ids)
    return W.take(ids, axis=0), (ids, W.shape)  # (..., C)


def _row_ids(name: str, W: Array, ids: Any) -> Array:
    if W.ndim != 2:
        raise ShapeError(f"{name}: W has shape {W.shape} (must be (vocabulary, channels))")
    return check_ids(name, ids, W.shape[0])


def embedding_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    ids, shape = saved
    return (scatter_add(ids, dy, shape),)  # forward was: y[i] = W[ids[i]]                         [IX.4]


def embedding_native_forward(W: Array, *, ids: Any) -> Result:
    ids = _row_ids("embedding", W, ids)
    y = native.empty((*ids.shape, W.shape[1]))
    native.kernels().gather_rows(rows(y), W, ids.reshape(-1))
    return y, (ids, W.shape)


def embedding_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    ids, shape = saved
    dW = summed_into(needs[0], shape)
    native.kernels().scatter_add_rows(dW, rows(dy), ids.reshape(-1))
    return (dW,)


def embedding_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 5, 3),), {"ids": np.array([2, 0, 2, 4])})
    yield Example((normal(rng, 7, 4),), {"ids": rng.integers(0, 7, size=(2, 6))})
    yield Example((normal(rng, 3, 1),), {"ids": 1})
    for C in (16, 33, 257):  # whole vectors of the native kernel, and a remainder
        yield Example((normal(rng, 5, C),), {"ids": rng.integers(0, 5, size=7)})


def embedding_abstract(W: Array, *, ids: Any) -> Result:
    return abstract((*np.shape(ids), W.shape[1]), W.dtype), (abstract(np.shape(ids), np.intp), W.shape)


embedding = Op(
    "embedding", embedding_forward, embedding_backward, embedding_example,
    composed=lambda W, *, ids: matmul(one_hot(ids, W.shape[0], W.dtype), W),
    native=(embedding_native_forward, embedding_native_backward), abstract=embedding_abstract, integers=True,
)  # fmt: skip


def embedding_bag_forward(W: Array, *, ids: Any, weights: Any = None) -> Result:
    """W (V, C), ids (..., n) of integers, weights (..., n) -> y (..., C): Σ_j weights[j] W[ids[j]] of each bag

    Without weights each id counts once. A row that weighs 0 counts for nothing, whatever is in it.
    """
    ids, weights = _bags(W, ids, weights)
    found = W.take(ids, axis=0)  # (..., n, C)
    if weights is not None:
        each = weights[..., None]
        found = np.multiply(found, each, where=each != 0, out=np.zeros_like(found))
    return found.sum(axis=-2), (ids, weights, W.shape)  #                                          [IX.7]


def _bags(W: Array, ids: Any, weights: Any) -> tuple[Array, Array | None]:
    """ids (..., n), and a weight for each if there are any."""
    ids = _row_ids("embedding_bag", W, ids)
    if ids.ndim == 0:
        raise ShapeError("embedding_bag: ids have no axis (must be (..., n), n ids in each bag)")
    if weights is None:
        return ids, None
    given = settled(weights)
    if given.shape != ids.shape:
        raise ShapeError(f"embedding_bag: weights are {given.shape}, ids {ids.shape} (must be equal)")
    return ids, given if given.dtype == W.dtype else given.astype(W.dtype)


def embedding_bag_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    ids, weights, shape = saved
    each = np.ones(ids.shape, dy.dtype) if weights is None else weights
    # forward was: y = Σ_j w_j W[ids[j]]                                                            [IX.8]
    return (scatter_add(ids, each[..., None] * dy[..., None, :], shape),)


def embedding_bag_native_forward(W: Array, *, ids: Any, weights: Any = None) -> Result:
    ids, weights = _bags(W, ids, weights)
    y = native.empty((*ids.shape[:-1], W.shape[1]))
    native.kernels().gather_bags(rows(y), W, ids.reshape(-1), _or_rows(weights))
    return y, (ids, weights, W.shape)


def embedding_bag_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    ids, weights, shape = saved
    dW = summed_into(needs[0], shape)
    native.kernels().scatter_add_bags(dW, rows(dy), ids.reshape(-1), _or_rows(weights))
    return (dW,)


def _or_rows(weights: Array | None) -> Array | None:
    return None if weights is None else rows(contiguous(weights))


def embedding_bag_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 5, 3),), {"ids": np.array([2, 0, 2, 4])})
    for C in (1, 16, 33):  # whole vectors of the native kernel, and a remainder
        weights = rng.normal(size=(2, 3, 4)).astype(np.float32) * (rng.random((2, 3, 4)) < 0.7)
        yield Example((normal(rng, 7, C),), {"ids": rng.integers(0, 7, size=(2, 3, 4)), "weights": weights})


def embedding_bag_abstract(W: Array, *, ids: Any, weights: Any = None) -> Result:
    shape = np.shape(ids)
    kept = None if weights is None else abstract(shape, W.dtype)
    return abstract((*shape[:-1], W.shape[1]), W.dtype), (abstract(shape, np.intp), kept, W.shape)


def embedding_bag_composed(W: Any, *, ids: Any, weights: Any = None) -> Any:
    found = embedding(W, ids=ids)
    return sum(found if weights is None else mul(found, np.asarray(weights)[..., None]), axis=-2)


embedding_bag = Op(
    "embedding_bag", embedding_bag_forward, embedding_bag_backward, embedding_bag_example,
    composed=embedding_bag_composed, native=(embedding_bag_native_forward, embedding_bag_native_backward),
    abstract=embedding_bag_abstract,
)  # fmt: skip


def put_rows_forward(W: Array, rows: Array, *, ids: Any, placed: bool = False) -> Result:
    """W (V, C), rows (n, C) -> y (V, C), W with row ids[i] replaced by rows[i]; no id stands twice

    They are in their places already if they are `placed`: then y is W.
    """
    ids = check_rows("put_rows", W, rows, ids)
    return (check_placed("put_rows", W, rows, ids) if placed else with_rows(W, rows, ids)), (ids,)


def put_rows_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (ids,) = saved
    dW = None
    if needs[0]:
        dW = dy.copy()
        dW[ids] = 0  # forward was: y = W, then y[ids] = rows                                       [IX.6]
    return dW, dy[ids] if needs[1] else None


def put_rows_native_forward(W: Array, rows: Array, *, ids: Any, placed: bool = False) -> Result:
    return put_rows_forward(W, rows, ids=ids, placed=placed)


def put_rows_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    if needs[0]:
        fail("put_rows: the gradient of the other rows is computed by NumPy")
        return put_rows_backward(dy, saved, needs)
    return None, picked_rows(dy, saved[0])


def picked_rows(W: Array, ids: Array) -> Array:
    """W[ids] by a kernel"""
    y = native.empty((len(ids), W.shape[1]))
    native.kernels().gather_rows(y, W, ids)
    return y


def with_rows(W: Array, rows: Array, ids: Array) -> Array:
    """W with these rows in it: W itself if it has them already, else a copy."""
    fail("rows of a table that are put there by NumPy")
    if np.array_equal(W[ids], rows):
        return W
    y = W.copy()
    y[ids] = rows
    return y


def check_placed(name: str, W: Array, rows: Array, ids: Array) -> Array:
    """W, which has these rows; in a recording its kernels write them."""
    if mode.recording is None and not np.array_equal(W[ids], rows, equal_nan=True):
        raise DataError(f"{name}: the rows are not in W (must be there if they are `placed`)")
    return W


def check_rows(name: str, W: Array, rows: Array, ids: Any) -> Array:
    """The ids of the rows of a matrix that are replaced, each once."""
    if W.ndim != 2 or rows.ndim != 2 or rows.shape[1] != W.shape[1] or np.shape(ids) != rows.shape[:1]:
        rule = "must be (V, C), (n, C) and (n,)"
        raise ShapeError(f"{name}: W is {W.shape}, rows are {rows.shape}, ids {np.shape(ids)} ({rule})")
    found = check_ids(name, ids, W.shape[0])
    if len(np.unique(found)) < len(found):
        raise DataError(f"{name}: ids are {found.tolist()} (must differ: a row is replaced once)")
    return found


def put_rows_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 5, 3), normal(rng, 2, 3)), {"ids": [4, 1]})
    yield Example((normal(rng, 3, 4), normal(rng, 3, 4)), {"ids": np.array([2, 0, 1])})
    yield Example((normal(rng, 7, 1), normal(rng, 1, 1)), {"ids": [0]})


def put_rows_abstract(W: Array, rows: Array, *, ids: Any, placed: bool = False) -> Result:
    return abstract(W.shape, W.dtype), (abstract(rows.shape[:1], np.intp),)


def put_rows_composed(W: Any, rows: Any, *, ids: Any, placed: bool = False) -> Any:
    places = one_hot(ids, W.shape[0], W.dtype)  # (n, V)
    left = 1 - places.sum(axis=0)[:, None]  # (V, 1): 0 where a row is replaced
    return add(mul(W, left), matmul(places.T, rows))


put_rows = Op(
    "put_rows", put_rows_forward, put_rows_backward, put_rows_example,
    composed=put_rows_composed, native=(put_rows_native_forward, put_rows_native_backward), abstract=put_rows_abstract,
)  # fmt: skip


def gather_forward(x: Array, *, ids: Any) -> Result:
    """x (..., V), ids (...) of integers -> y (...): entry ids[i] of each row"""
    ids = check_ids("gather", ids, x.shape[-1] if x.ndim else 0)
    if ids.shape != x.shape[:-1]:
        raise ShapeError(f"gather: ids are {ids.shape}, x is {x.shape} (ids must be {x.shape[:-1]})")
    ids = ids[..., None]  # (..., 1)
    return np.take_along_axis(x, ids, axis=-1)[..., 0], (ids, x.shape)


def gather_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    ids, shape = saved
    dx = np.zeros(shape, dy.dtype)
    np.put_along_axis(dx, ids, dy[..., None], axis=-1)  # forward was: y[i] = x[i, ids[i]]         [IX.5]
    return (dx,)


def gather_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 3, 4),), {"ids": [1, 3, 3]})
    yield Example((normal(rng, 2, 3, 7),), {"ids": rng.integers(0, 7, size=(2, 3))})
    yield Example((normal(rng, 5),), {"ids": 2})


gather = Op(
    "gather", gather_forward, gather_backward, gather_example,
    composed=lambda x, *, ids: sum(mul(x, one_hot(ids, x.shape[-1], x.dtype)), axis=-1), integers=True,
)  # fmt: skip


def one_hot(ids: Any, size: int, dtype: Any = np.float32) -> Array:
    """ids (...) of integers below `size` -> (..., size), a 1 at place ids[i] and 0 elsewhere.

    >>> import chainrule as cr
    >>> cr.ops.one_hot([1, 0], 3)
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    ids = check_ids("one_hot", ids, size)
    y = np.zeros((*ids.shape, size), dtype)
    np.put_along_axis(y, ids[..., None], 1, axis=-1)  #                                            [IX.3]
    return y


def check_ids(name: str, ids: Any, size: int) -> Array:
    """A copy of `ids` as integers; raises if one of them is not a number from 0 to size - 1."""
    found = settled(ids)
    if found.size == 0:
        return found.astype(np.intp)
    rule = f"vocabulary size is {size} (must be an integer from 0 to {size - 1})"
    if found.dtype.kind not in "iu":
        raise DataError(f"{name}: id {found.flat[0]} is of type {found.dtype}, {rule}")
    if found.min() < 0 or found.max() >= size:
        place = tuple(np.argwhere((found < 0) | (found >= size))[0].tolist())
        raise DataError(f"{name}: id {found[place]} at position {place}, {rule}")
    return found.astype(np.intp, copy=False)
