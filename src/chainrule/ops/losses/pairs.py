"""Losses of comparisons: a true neighbor with sampled words, a preferred answer with a rejected one.

    negative sampling   -log σ(c·p) - Σ_k log σ(-c·n_k)
    Bradley-Terry       -log σ(r_chosen - r_rejected)

Both are computed as softplus(-z) = log(1 + e^-z), which is finite even where σ(z) rounds to 0.
Derivations: docs/derivations/pairs.md
"""

from __future__ import annotations

from typing import Any

from chainrule.autograd import Op
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import ShapeError
from chainrule.ops._util import examples, shapes
from chainrule.ops.arrays import reduce
from chainrule.ops.arrays.elementwise import add, mul, neg, sub
from chainrule.ops.arrays.shape import reshape
from chainrule.ops.losses._reduction import reduced, spread
from chainrule.ops.neural.activations import log_sigmoid, logistic, softplus


def _softplus(z: Array) -> Any:
    return softplus.forward(z)[0]  # [PR.1]


def _reduce_composed(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return reduce.sum(losses) if reduction == "sum" else reduce.mean(losses)


# -- negative sampling --------------------------------------------------------------------------------------


def negative_sampling_forward(
    center: Array, positive: Array, negatives: Array, *, reduction: str = "mean"
) -> Result:
    """-log σ(c·p) - Σ_k log σ(-c·n_k): pull a word's vector to its neighbor, push it from K sampled words.

    center (..., C), positive (..., C), negatives (..., K, C); `reduction` "mean" or "sum" over the leading
    axes, or "none". K+1 dot products replace the V of a full softmax.
    """
    if center.shape != positive.shape:
        raise ShapeError(
            f"negative_sampling: center has shape {center.shape}, positive {positive.shape} (must be equal)"
        )
    if negatives.ndim != center.ndim + 1 or (*negatives.shape[:-2], negatives.shape[-1]) != center.shape:
        raise ShapeError(
            f"negative_sampling: negatives have shape {negatives.shape}, center {center.shape} "
            "(must be center's shape with an axis of samples before the last)"
        )
    s_p = (center * positive).sum(axis=-1)  # (...)
    s_n = (negatives @ center[..., None])[..., 0]  # (..., K)
    losses = _softplus(-s_p) + _softplus(s_n).sum(axis=-1)  # [PR.2]
    return reduced("negative_sampling", losses, reduction), (center, positive, negatives, s_p, s_n, reduction)


def negative_sampling_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    center, positive, negatives, s_p, s_n, reduction = saved
    dy = spread(dy, s_p.size, reduction)  # () or (...)
    ds_p = (-dy * logistic(-s_p))[..., None]  # (..., 1)    [PR.3]
    ds_n = (dy[..., None] * logistic(s_n))[..., None]  # (..., K, 1)    [PR.4]
    dc = ds_p * positive + (ds_n * negatives).sum(axis=-2) if needs[0] else None  # [PR.5]
    dp = ds_p * center if needs[1] else None  # [PR.6]
    dn = ds_n * center[..., None, :] if needs[2] else None
    return dc, dp, dn


def negative_sampling_composed(center: Any, positive: Any, negatives: Any, *, reduction: str = "mean") -> Any:
    s_p = reduce.sum(mul(center, positive), axis=-1)
    row = reshape(center, shape=(*center.shape[:-1], 1, center.shape[-1]))  # (..., 1, C)
    s_n = reduce.sum(mul(row, negatives), axis=-1)  # (..., K)
    losses = neg(add(log_sigmoid(s_p), reduce.sum(log_sigmoid(neg(s_n)), axis=-1)))
    return _reduce_composed(losses, reduction)


negative_sampling = Op(
    "negative_sampling", negative_sampling_forward, negative_sampling_backward,
    examples(shapes((4, 5), (4, 5), (4, 3, 5)), shapes((7,), (7,), (1, 7), reduction="sum"),
             shapes((2, 3, 1), (2, 3, 1), (2, 3, 6, 1), reduction="none")),
    composed=negative_sampling_composed,
)  # fmt: skip


# -- Bradley-Terry ------------------------------------------------------------------------------------------


def bradley_terry_forward(chosen: Array, rejected: Array, *, reduction: str = "mean") -> Result:
    """-log σ(chosen - rejected), both rewards (...): the surprise that the first was preferred.

    σ(r_i - r_j) = p_i / (p_i + p_j) for strengths p = e^r; only differences of rewards matter.
    """
    if chosen.shape != rejected.shape:
        raise ShapeError(
            f"bradley_terry: chosen has shape {chosen.shape}, rejected has {rejected.shape} (must be equal)"
        )
    z = chosen - rejected  # [PR.7]
    return reduced("bradley_terry", _softplus(-z), reduction), (z, reduction)  # [PR.8]


def bradley_terry_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    z, reduction = saved
    dz = -spread(dy, z.size, reduction) * logistic(-z)  # small if the model is sure    [PR.9]
    return dz if needs[0] else None, -dz if needs[1] else None


bradley_terry = Op(
    "bradley_terry", bradley_terry_forward, bradley_terry_backward,
    examples(shapes((5,), (5,)), shapes((7, 1), (7, 1), reduction="sum"),
             shapes((2, 3), (2, 3), reduction="none"), shapes((), ())),
    composed=lambda chosen, rejected, *, reduction="mean": (
        _reduce_composed(neg(log_sigmoid(sub(chosen, rejected))), reduction)
    ),
)  # fmt: skip
