"""Layer normalization over the last axis.        Derivation: docs/derivations/layernorm.md

y = x̂ γ + β,   x̂ = (x - μ) r,   r = 1/√(σ² + ε)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.recording import contiguous
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import ConfigError
from chainrule.ops._util import (
    centered,
    check_features,
    examples,
    mean_last,
    rstd_of,
    shapes,
    sum_lead,
    summed_into,
)
from chainrule.ops.arrays import reduce
from chainrule.ops.arrays.elementwise import add, div, mul, sqrt, sub


def forward(x: Array, gamma: Array, beta: Array, *, eps: float = 1e-5, eps_mode: str = "inside") -> Result:
    """Normalize each row of x to mean 0 and variance 1, scale and shift: (x - μ) / √(σ² + ε) · γ + β

    x (..., C), gamma (C,), beta (C,) -> y (..., C). `eps_mode="outside"` divides by σ + ε instead.
    """
    check_features("layernorm", x, gamma=gamma, beta=beta)
    y, mean, var = centered(x, -1)  # (..., C), (..., 1), (..., 1)                               [LN.1] [LN.8]
    saved: Saved
    if eps_mode == "inside":
        rstd = rstd_of(var, eps)  # (..., 1)                                                          [LN.2]
        saved = (x, gamma, beta, mean, rstd)
    elif eps_mode == "outside":
        std = np.sqrt(var)
        rstd = 1 / (std + eps)
        saved = (x, gamma, beta, mean, rstd, std)
    else:
        raise ConfigError(f"layernorm: eps_mode is {eps_mode!r} (must be 'inside' or 'outside')")
    y *= rstd
    y *= gamma
    y += beta
    return y, saved  # x̂ is recomputed: storing it would cost another (..., C) array; y too, from beta


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, gamma, _, mean, rstd, *std = saved
    dx = dgamma = dbeta = None
    xhat = x - mean
    xhat *= rstd  # forward was: y = xhat * gamma + beta
    product = dy * xhat
    if needs[1]:
        dgamma = sum_lead(product)  # [LN.4]
    if needs[2]:
        dbeta = sum_lead(dy)  # [LN.5]
    if needs[0]:
        product *= gamma
        through_var = mean_last(product)  # mean(dxhat * xhat)
        if std:  # forward was: rstd = 1 / (std + eps); a row with std = 0 has xhat = 0
            through_var /= np.where(std[0] > 0, std[0], 1) * rstd  # [LN.7]
        dx = dy * gamma  # dxhat                                                                      [LN.3]
        dx -= mean_last(dx)
        xhat *= through_var
        dx -= xhat
        dx *= rstd  # r (dx̂ - mean(dx̂) - x̂ mean(dx̂ x̂))                                                [LN.6]
    return dx, dgamma, dbeta


def native_forward(
    x: Array, gamma: Array, beta: Array, *, eps: float = 1e-5, eps_mode: str = "inside"
) -> Result:
    if eps_mode != "inside":  # the kernel has ε inside the root only
        return forward(x, gamma, beta, eps=eps, eps_mode=eps_mode)
    check_features("layernorm", x, gamma=gamma, beta=beta)
    x, gamma, beta = map(contiguous, (x, gamma, beta))  # a slice, such as the rows behind a prompt, is copied
    y = native.empty_like(x)
    mean, rstd = native.empty((*x.shape[:-1], 1)), native.empty((*x.shape[:-1], 1))
    native.kernels().layernorm_forward(y, mean, rstd, x, gamma, beta, eps)
    return y, (x, gamma, beta, mean, rstd)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    if len(saved) > 5:
        return backward(dy, saved, needs)
    x, gamma, beta, mean, rstd = saved
    dx = native.empty_like(x) if needs[0] else None
    dgamma = dbeta = None
    if needs[1] or needs[2]:  # both in one pass
        dgamma, dbeta = summed_into(needs[1], gamma.shape), summed_into(needs[2], beta.shape)
    native.kernels().layernorm_backward(dx, dgamma, dbeta, x, gamma, mean, rstd, contiguous(dy))
    return dx, dgamma, dbeta


def composed(x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, eps_mode: str = "inside") -> Any:
    """The composition from small ops."""
    centered = sub(x, reduce.mean(x, axis=-1, keepdims=True))
    var = reduce.mean(mul(centered, centered), axis=-1, keepdims=True)
    scale = sqrt(add(var, eps)) if eps_mode == "inside" else add(sqrt(var), eps)
    return add(mul(div(centered, scale), gamma), beta)


example = examples(
    shapes((2, 3, 5), (5,), (5,)), shapes((7,), (7,), (7,), eps=0.1),
    shapes((3, 4), (4,), (4,), eps=0.1, eps_mode="outside"), shapes((5, 1), (1,), (1,)),
    *(shapes((3, C), (C,), (C,)) for C in (16, 33, 257))  # whole vectors of the native kernel, and a remainder
)  # fmt: skip


def abstract_forward(
    x: Array, gamma: Array, beta: Array, *, eps: float = 1e-5, eps_mode: str = "inside"
) -> Result:
    check_features("layernorm", x, gamma=gamma, beta=beta)
    statistics = abstract((3 if eps_mode == "outside" else 2, *x.shape[:-1], 1), x.dtype)
    return abstract(x.shape, x.dtype), (x, gamma, beta, *statistics)


layernorm = Op(
    "layernorm", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), strided=True, recompute=lambda saved: saved[:3],
    abstract=abstract_forward,
)  # fmt: skip
