"""Matmul, batched, with broadcasting.        Derivation: docs/derivations/matmul.md

    C = A B,   dA = dC Bᵀ,   dB = Aᵀ dC

The derivation compares the two loop orders; docs/understand/kernels.md continues with the kernel used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd import Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape, Work
from chainrule.errors import ShapeError
from chainrule.ops._util import examples, rows, shapes, times, unbroadcast

Times: TypeAlias = Callable[[Array, Array], Array]


def forward(a: Array, b: Array) -> Result:
    """a (..., n, k), b (..., k, m) -> c (..., n, m); leading axes broadcast.

    As in NumPy a vector a is a row, a vector b is a column, and the added axis is dropped from the result.
    """
    _check(a.shape, b.shape)
    return _product(a, b, times), (a, b)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return _gradients(dy, saved, needs, times)


def native_forward(a: Array, b: Array) -> Result:
    _check(a.shape, b.shape)
    return _product(a, b, native_times), (a, b)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return _gradients(dy, saved, needs, native_times)


def _gradients(dy: Array, saved: Saved, needs: Needs, product: Times) -> Grads:
    a, b = saved
    A = a[None, :] if a.ndim == 1 else a  # (..., n, k)
    B = b[:, None] if b.ndim == 1 else b  # (..., k, m)
    batch = dy.shape[: dy.ndim - (a.ndim > 1) - (b.ndim > 1)]
    dC = dy.reshape(*batch, A.shape[-2], B.shape[-1])  # (..., n, m)
    da = db = None
    if needs[0]:
        dA = _product(dC, B.swapaxes(-1, -2), product)  # forward was: C = A B                     [MM.1]
        da = unbroadcast(dA, A.shape).reshape(a.shape)
    if needs[1] and B.ndim == 2:
        db = product(rows(A).T, rows(dC)).reshape(b.shape)  # the sum over the batch is one       [MM.3]
    elif needs[1]:
        dB = product(A.swapaxes(-1, -2), dC)  #                                                    [MM.2]
        db = unbroadcast(dB, B.shape).reshape(b.shape)
    return da, db


def _product(a: Array, b: Array, product: Times) -> Array:
    """a @ b; a batch of matrices times one matrix is one large matmul instead of many small ones."""
    if a.ndim > 2 and b.ndim == 2:
        return product(rows(a), b).reshape(*a.shape[:-1], b.shape[-1])  # (..., n, m)
    return product(a, b)


def native_times(a: Array, b: Array) -> Array:
    """a @ b by the native kernel, with the leading axes merged into one."""
    if a.ndim == 2 and b.ndim == 2:
        return native.matmul(a, b, precision=mode.precision)
    A = a[None, :] if a.ndim == 1 else a
    B = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = (np.broadcast_to(x, batch + x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (A, B))
    shape = batch + a.shape[-2:-1] + (b.shape[-1:] if b.ndim > 1 else ())
    return native.matmul(A, B, precision=mode.precision).reshape(shape)


def _check(a: Shape, b: Shape) -> None:
    if not a or not b:
        raise ShapeError(f"matmul: a is {a}, b is {b} (both must have at least one axis; use * for a number)")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ShapeError(f"matmul: a is {a}, b is {b} (inner sizes {a[-1]} and {inner} must be equal)")
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        rule = f"batch axes {a[:-2]} and {b[:-2]} must broadcast"
        raise ShapeError(f"matmul: a is {a}, b is {b} ({rule})") from None


example = examples(
    shapes((3, 4), (4, 5)), shapes((7, 1), (1, 5)), shapes((2, 3, 4), (2, 4, 5)), shapes((2, 3, 4), (4, 5)),
    shapes((3, 4), (2, 4, 5)), shapes((2, 1, 3, 4), (7, 4, 2)), shapes((4,), (4,)), shapes((4,), (2, 4, 3)),
    shapes((2, 3, 4), (4,))
)  # fmt: skip


def abstract_forward(a: Array, b: Array) -> Result:
    _check(a.shape, b.shape)
    return abstract(_shape(a, b), a.dtype), (a, b)


def _shape(a: Array, b: Array) -> Shape:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (*batch, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))


def cost(needs: Needs, a: Array, b: Array) -> Work:
    product = 2 * math.prod(_shape(a, b)) * a.shape[-1]
    return Work(product, (bool(needs[0]) + bool(needs[1])) * product)


matmul = Op(
    "matmul", forward, backward, example,
    native=(native_forward, native_backward), strided=True, abstract=abstract_forward, cost=cost, integers=True,
)  # fmt: skip
