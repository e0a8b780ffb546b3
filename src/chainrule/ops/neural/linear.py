"""Linear layer.        Derivation: docs/derivations/linear.md

    y = x Wᵀ + b,   dx = dy W,   dW = dyᵀ x,   db = Σ dy

Weights are stored (out, in); `layout="in_out"` takes them as (in, out) and computes x W + b.
"""

from __future__ import annotations

from typing import Any

from chainrule import native
from chainrule.autograd import Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Work
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import examples, product_into, rows, shapes, sum_lead, summed_into, times
from chainrule.ops.arrays.elementwise import add
from chainrule.ops.arrays.matmul import matmul
from chainrule.ops.arrays.shape import transpose

LAYOUTS = ("out_in", "in_out")


def forward(x: Array, W: Array, b: Array | None = None, *, layout: str = "out_in") -> Result:
    """x (..., in), W (out, in) or (in, out) by `layout`, b (out,) or None -> y (..., out)"""
    _check(x, W, b, layout)
    M = W if layout == "in_out" else W.T  # (in, out)
    y = times(rows(x), M)  # (rows, out): one matmul for the whole batch
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], M.shape[1]), (x, W, layout)  # (..., out)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, W, layout = saved
    dY = rows(dy)  # (rows, out)
    M = W if layout == "in_out" else W.T  # (in, out)
    dx = dW = db = None
    if needs[0]:
        dx = times(dY, M.T).reshape(*dy.shape[:-1], M.shape[0])  # forward was: Y = X M + b        [LI.1]
    if needs[1]:
        X = rows(x)  # (rows, in)
        dW = times(X.T, dY) if layout == "in_out" else times(dY.T, X)  #                           [LI.2]
    if needs[2]:
        db = sum_lead(dY)  #                                                                       [LI.3]
    return dx, dW, db


def native_forward(x: Array, W: Array, b: Array | None = None, *, layout: str = "out_in") -> Result:
    _check(x, W, b, layout)
    M = W if layout == "in_out" else W.T  # (in, out)
    # The bias is added while the result is still in registers.
    y = native.matmul(rows(x), M, bias=b, precision=mode.precision)
    return y.reshape(*x.shape[:-1], M.shape[1]), (x, W, layout)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, W, layout = saved
    dY = rows(dy)  # (rows, out)
    dx = dW = db = None
    if needs[0]:
        dX = native.matmul(dY, W.T if layout == "in_out" else W, precision=mode.precision)  #       [LI.1]
        dx = dX.reshape(*dy.shape[:-1], dX.shape[1])
    if needs[1]:
        X = rows(x)  # (rows, in)
        left, right = (X, dY) if layout == "in_out" else (dY, X)
        dW, adds = product_into(needs[1], W)
        native.matmul(left.T, right, out=dW, accumulate=adds, precision=mode.precision)  #          [LI.2]
    if needs[2]:
        db = summed_into(needs[2], dY.shape[1:])
        native.kernels().column_sums(db, dY)  # added to                                           [LI.3]
    return dx, dW, db


def _check(x: Array, W: Array, b: Array | None, layout: str) -> None:
    if layout not in LAYOUTS:
        raise ConfigError(f"linear: layout is {layout!r} (must be one of {', '.join(LAYOUTS)})")
    if W.ndim != 2 or x.ndim < 1:
        raise ShapeError(f"linear: x is {x.shape}, W is {W.shape} (x must have an axis, W two)")
    out, size = W.shape if layout == "out_in" else W.shape[::-1]
    if x.shape[-1] != size:
        raise ShapeError(f"linear: x has {x.shape[-1]} features, W {W.shape} takes {size} (must be equal)")
    if b is not None and b.shape != (out,):
        raise ShapeError(f"linear: b is {b.shape}, W {W.shape} gives {out} features (b must be ({out},))")


example = examples(
    shapes((3, 4), (5, 4), (5,)), shapes((2, 3, 4), (7, 4), (7,)), shapes((4,), (1, 4), (1,)),
    shapes((2, 3, 4), (5, 4)), shapes((2, 3, 4), (4, 5), (5,), layout="in_out"),
    shapes((7, 33), (17, 33), (17,))  # whole tiles of the kernel, and remainders
)  # fmt: skip


def composed(x: Any, W: Any, b: Any = None, *, layout: str = "out_in") -> Any:
    y = matmul(x, W if layout == "in_out" else transpose(W))
    return y if b is None else add(y, b)


def abstract_forward(x: Array, W: Array, b: Array | None = None, *, layout: str = "out_in") -> Result:
    _check(x, W, b, layout)
    out = W.shape[0 if layout == "out_in" else 1]
    return abstract((*x.shape[:-1], out), x.dtype), (x, W, layout)


def keep(saved: Saved, needs: Needs) -> Saved:
    """Without x if W is frozen: dx = dy W does not need it."""
    x, W, layout = saved
    return (x if needs[1] else None), W, layout


def cost(needs: Needs, x: Array, W: Array, b: Array | None = None, *, layout: str = "out_in") -> Work:
    product = 2 * rows(x).shape[0] * W.size
    return Work(product, (bool(needs[0]) + bool(needs[1])) * product)


linear = Op(
    "linear", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), keep=keep, abstract=abstract_forward, cost=cost,
)  # fmt: skip
