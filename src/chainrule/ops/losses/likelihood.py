"""Losses of probabilities: cross-entropy, binary cross-entropy, KL divergence.

Derivations: docs/derivations/losses.md. 0 log 0 = 0; a loss is infinite only where a target has probability 0.
Cross-entropy from logits, the loss of language models, is in cross_entropy.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.autograd import Example, Op
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import DataError, ShapeError
from chainrule.ops._util import examples, normal, shapes
from chainrule.ops.losses._reduction import reduced, spread
from chainrule.ops.losses._targets import read_targets
from chainrule.ops.neural.softmax import log_softmax


def _log(p: Array, counts: Array | bool = True) -> Array:
    """log p, and 0 where p does not count."""
    with np.errstate(divide="ignore"):
        return np.log(p, out=np.zeros_like(p), where=counts)


def _ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where a = 0."""
    with np.errstate(divide="ignore"):
        return np.divide(a, b, out=np.zeros_like(b), where=a != 0)


def _check_probabilities(name: str, p: Array) -> None:
    if p.size and not (p.min() >= 0 and p.max() <= 1 + 1e-6):
        raise DataError(f"{name}: values from {p.min():g} to {p.max():g} (probabilities must be from 0 to 1)")


def cross_entropy_probs_forward(p: Array, *, targets: Any, reduction: str = "mean") -> Result:
    """-Σ_i t_i log p_i of each row of p (..., V); targets t are class ids (...) or distributions (..., V)"""
    _check_probabilities("cross_entropy_probs", p)
    target, _ = read_targets("cross_entropy_probs", targets, p.shape, p.dtype)
    rows = p.reshape(-1, p.shape[-1])  # (N, V)
    if target.ndim == 1:
        hit = rows[np.arange(len(rows)), target]  # the true class alone
        nll = -_log(hit)
    else:
        nll = -(target * _log(rows, target != 0)).sum(axis=1)  # [LO.6]
    return reduced("cross_entropy_probs", nll.reshape(p.shape[:-1]), reduction), (p, target, reduction)


def cross_entropy_probs_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    p, target, reduction = saved
    rows = p.reshape(-1, p.shape[-1])
    g = spread(dy, len(rows), reduction).reshape(-1, 1)
    if target.ndim == 1:
        dp = np.zeros_like(rows)
        dp[np.arange(len(rows)), target] = -1
    else:
        dp = -target
    dp = _ratio(dp, rows)  # -t / p                                                          [LO.7]
    dp *= g
    return (dp.reshape(p.shape),)


def cross_entropy_probs_example(rng: np.random.Generator) -> Iterator[Example]:
    p = rng.dirichlet(np.full(5, 4.0), size=(2, 3))
    yield Example((p,), {"targets": rng.integers(0, 5, size=(2, 3))})
    yield Example((p,), {"targets": rng.dirichlet(np.ones(5), size=(2, 3)), "reduction": "none"})
    yield Example((p[0, 0],), {"targets": 3, "reduction": "sum"})


cross_entropy_probs = Op(
    "cross_entropy_probs", cross_entropy_probs_forward, cross_entropy_probs_backward,
    cross_entropy_probs_example
)  # fmt: skip


def _binary_targets(name: str, targets: Any, like: Array) -> Array:
    t: Array = np.array(targets, dtype=like.dtype)  # a copy: backward needs the present values
    if t.shape != like.shape:
        raise ShapeError(f"{name}: targets have shape {t.shape}, predictions {like.shape} (must be equal)")
    _check_probabilities(f"{name}: targets", t)
    return t


def binary_cross_entropy_forward(p: Array, *, targets: Any, reduction: str = "mean") -> Result:
    """-t log p - (1 - t) log(1 - p); p is the probability of class 1, targets t in [0, 1] have p's shape

    p (...), targets (...) -> loss (), or (...) with reduction none
    """
    _check_probabilities("binary_cross_entropy", p)
    t = _binary_targets("binary_cross_entropy", targets, p)
    loss = -t * _log(p, t != 0) - (1 - t) * _log(1 - p, t != 1)  # [LO.8]
    return reduced("binary_cross_entropy", loss, reduction), (p, t, reduction)


def binary_cross_entropy_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    p, t, reduction = saved
    return (spread(dy, p.size, reduction) * (_ratio(1 - t, 1 - p) - _ratio(t, p)),)  # [LO.9]


def binary_cross_entropy_example(rng: np.random.Generator) -> Iterator[Example]:
    p = rng.uniform(0.1, 0.9, size=(3, 4))
    yield Example((p,), {"targets": rng.integers(0, 2, size=(3, 4))})
    yield Example((p,), {"targets": rng.uniform(size=(3, 4)), "reduction": "none"})


binary_cross_entropy = Op(
    "binary_cross_entropy", binary_cross_entropy_forward, binary_cross_entropy_backward,
    binary_cross_entropy_example
)  # fmt: skip


def bce_with_logits_forward(logits: Array, *, targets: Any, reduction: str = "mean") -> Result:
    """Binary cross-entropy of p = σ(z) from the logit z: max(z, 0) - z t + log(1 + e^-|z|), without overflow

    logits (...), targets (...) -> loss (), or (...) with reduction none
    """
    t = _binary_targets("binary_cross_entropy_with_logits", targets, logits)
    loss = np.log1p(np.exp(-np.abs(logits)))
    loss += np.maximum(logits, 0)
    loss -= logits * t  # [LO.10]
    return reduced("binary_cross_entropy_with_logits", loss, reduction), (logits, t, reduction)


def bce_with_logits_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    z, t, reduction = saved
    e = np.exp(-np.abs(z))
    sigmoid = np.where(z >= 0, 1, e) / (1 + e)
    return (spread(dy, z.size, reduction) * (sigmoid - t),)  # [LO.11]


def bce_with_logits_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 3, 4),), {"targets": rng.integers(0, 2, size=(3, 4))})
    yield Example((3 * normal(rng, 7),), {"targets": rng.uniform(size=7), "reduction": "sum"})


binary_cross_entropy_with_logits = Op(
    "binary_cross_entropy_with_logits", bce_with_logits_forward, bce_with_logits_backward,
    bce_with_logits_example
)  # fmt: skip


def kl_divergence_forward(p: Array, q: Array, *, reduction: str = "mean") -> Result:
    """KL(p ‖ q) = Σ_i p_i log(p_i / q_i) of each row of two arrays of distributions (..., V)

    Where p_i = 0 the derivative by p_i is infinite; the gradient is set to 0, so that the class stays at 0.
    """
    _check_pair("kl_divergence", p, q)
    _check_probabilities("kl_divergence: p", p)
    _check_probabilities("kl_divergence: q", q)
    logs = _log(p, p != 0) - _log(q, p != 0)
    return reduced("kl_divergence", (p * logs).sum(axis=-1), reduction), (p, q, reduction)  # [LO.12]


def kl_divergence_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    p, q, reduction = saved
    g = spread(dy, p[..., 0].size, reduction)[..., None]
    dp = dq = None
    if needs[0]:
        dp = g * (_log(p, p != 0) - _log(q, p != 0) + (p != 0))  # [LO.13]
    if needs[1]:
        dq = -g * _ratio(p, q)  # [LO.14]
    return dp, dq


def kl_divergence_example(rng: np.random.Generator) -> Iterator[Example]:
    p, q = rng.dirichlet(np.full(4, 4.0), size=(2, 3))
    yield Example((p, q))
    yield Example((p, q), {"reduction": "none"})
    yield Example((p[0], q[0]), {"reduction": "sum"})


kl_divergence = Op("kl_divergence", kl_divergence_forward, kl_divergence_backward, kl_divergence_example)


def kl_divergence_logits_forward(p_logits: Array, q_logits: Array, *, reduction: str = "mean") -> Result:
    """KL(softmax(p_logits) ‖ softmax(q_logits)) of each row (..., V), from logarithms: finite for any tiny q"""
    _check_pair("kl_divergence_logits", p_logits, q_logits)
    log_p = log_softmax.forward(p_logits)[0]
    log_q = log_softmax.forward(q_logits)[0]
    p = np.exp(log_p)
    kl = (p * _log_ratio(p, log_p, log_q)).sum(axis=-1)
    return reduced("kl_divergence_logits", kl, reduction), (log_p, log_q, kl, reduction)


def kl_divergence_logits_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    log_p, log_q, kl, reduction = saved
    g = spread(dy, kl.size, reduction)[..., None]
    p = np.exp(log_p)
    da = db = None
    if needs[0]:
        da = g * p * (_log_ratio(p, log_p, log_q) - kl[..., None])  # [LO.15]
    if needs[1]:
        db = g * (np.exp(log_q) - p)  # [LO.16]
    return da, db


def _log_ratio(p: Array, log_p: Array, log_q: Array) -> Array:
    return np.subtract(log_p, log_q, out=np.zeros_like(p), where=p != 0)


def _check_pair(name: str, p: Array, q: Array) -> None:
    if p.shape != q.shape or p.ndim == 0:
        raise ShapeError(f"{name}: p has shape {p.shape}, q has {q.shape} (must be equal, at least one axis)")


kl_divergence_logits = Op(
    "kl_divergence_logits", kl_divergence_logits_forward, kl_divergence_logits_backward,
    examples(shapes((2, 3, 5), (2, 3, 5)), shapes((3, 5), (3, 5), reduction="none"),
             shapes((7,), (7,), reduction="sum")),
)  # fmt: skip
