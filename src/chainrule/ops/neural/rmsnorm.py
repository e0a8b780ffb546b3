"""Root-mean-square normalization over the last axis.        Derivation: docs/derivations/rmsnorm.md

y = x̂ γ,   x̂ = x r,   r = 1/√(mean(x²) + ε)        (Zhang and Sennrich 2019)

Layer norm without mean and shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import contiguous
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.ops._util import check_features, examples, mean_last, rstd_of, shapes, sum_lead, summed_into
from chainrule.ops.arrays import reduce
from chainrule.ops.arrays.elementwise import add, div, mul, sqrt


def forward(x: Array, gamma: Array, *, eps: float = 1e-6) -> Result:
    """Divide each row of x by its root mean square, then scale: x / √(mean(x²) + ε) · γ

    x (..., C), gamma (C,) -> y (..., C)
    """
    check_features("rmsnorm", x, gamma=gamma)
    with np.errstate(over="ignore"):
        rstd = rstd_of(mean_last(x * x), eps)  # (..., 1)                                             [RN.1]
    y = x * rstd
    y *= gamma
    return y, (x, gamma, rstd)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, gamma, rstd = saved
    dx = dgamma = None
    xhat = x * rstd  # forward was: y = xhat * gamma
    product = dy * xhat
    if needs[1]:
        dgamma = sum_lead(product)  # [RN.2]
    if needs[0]:
        product *= gamma
        xhat *= mean_last(product)  # mean(dxhat * xhat)
        dx = dy * gamma  # dxhat
        dx -= xhat
        dx *= rstd  # r (dx̂ - x̂ mean(dx̂ x̂))                                                           [RN.3]
    return dx, dgamma


def native_forward(x: Array, gamma: Array, *, eps: float = 1e-6) -> Result:
    check_features("rmsnorm", x, gamma=gamma)
    x, gamma = contiguous(x), contiguous(gamma)  # a slice, such as the rows behind a prompt, is copied
    y, rstd = native.empty_like(x), native.empty((*x.shape[:-1], 1))
    native.kernels().rmsnorm_forward(y, rstd, x, gamma, eps)
    return y, (x, gamma, rstd)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, gamma, rstd = saved
    dx = native.empty_like(x) if needs[0] else None
    dgamma = summed_into(needs[1], gamma.shape) if needs[1] else None
    native.kernels().rmsnorm_backward(dx, dgamma, x, gamma, rstd, contiguous(dy))
    return dx, dgamma


def composed(x: Any, gamma: Any, *, eps: float = 1e-6) -> Any:
    """The composition from small ops."""
    mean_square = reduce.mean(mul(x, x), axis=-1, keepdims=True)
    return mul(div(x, sqrt(add(mean_square, eps))), gamma)


example = examples(
    shapes((2, 3, 5), (5,)), shapes((7,), (7,), eps=0.1), shapes((5, 1), (1,), eps=0.5),
    *(shapes((3, C), (C,)) for C in (16, 33, 257))  # whole vectors of the native kernel, and a remainder
)  # fmt: skip


def abstract_forward(x: Array, gamma: Array, *, eps: float = 1e-6) -> Result:
    check_features("rmsnorm", x, gamma=gamma)
    return abstract(x.shape, x.dtype), (x, gamma, abstract((*x.shape[:-1], 1), x.dtype))


rmsnorm = Op(
    "rmsnorm", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), strided=True, recompute=lambda saved: saved[:2],
    abstract=abstract_forward,
)  # fmt: skip
