"""Surprise, entropy, cross-entropy, KL divergence and perplexity.

Distributions run along the last axis; the unit is the nat (base e) unless a base is given; 0 log 0 counts as 0.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError
from chainrule.foundations._check import Array, alike, array
from chainrule.foundations.probability import distribution


def surprise(p: npt.ArrayLike, base: float = math.e) -> Array:
    """-log p: 0 for a certain event, infinite for an impossible one.

    p (...) -> (...)
    """
    p = array(p)
    if not ((p >= 0) & (p <= 1)).all():
        raise ConfigError(f"surprise: probabilities from {p.min()} to {p.max()} (must be from 0 to 1)")
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(p) / _unit(base)) + 0.0  # + 0.0 turns -0 into 0


def entropy(p: npt.ArrayLike, base: float = math.e) -> Array:
    """Σ p(x) (-log p(x)), the expected surprise: 0 when certain, log n at most. (..., n) -> (...)"""
    return cross_entropy(p, p, base)


def cross_entropy(p: npt.ArrayLike, q: npt.ArrayLike, base: float = math.e) -> Array:
    """Σ p(x) (-log q(x)): the mean code length with a code for q when p is true. (..., n) -> (...)"""
    p, q = alike(distribution(p, "cross_entropy"), distribution(q, "cross_entropy"), "cross_entropy")
    cost = np.multiply(p, surprise(np.minimum(q, 1), base), out=np.zeros_like(p), where=p > 0)
    return np.asarray(cost.sum(axis=-1))


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike, base: float = math.e) -> Array:
    """Cross-entropy minus entropy, the avoidable part of the surprise: ≥ 0, and 0 only for q = p.

    p (..., V), q (..., V) -> (...)
    """
    p, q = alike(distribution(p, "kl_divergence"), distribution(q, "kl_divergence"), "kl_divergence")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q)
    cost = np.multiply(p, ratio, out=np.zeros_like(p), where=p > 0)
    return np.asarray(cost.sum(axis=-1) / _unit(base))


def perplexity(nats: npt.ArrayLike) -> Array:
    """exp(mean loss in nats): the number of equally likely choices with the same loss.

    nats (...) -> (...)
    """
    return np.asarray(np.exp(array(nats)))


def nats_to_bits(nats: npt.ArrayLike) -> Array:
    """ln 2 nats are one bit.

    nats (...) -> bits (...)
    """
    return array(nats) / math.log(2)


def bits_to_nats(bits: npt.ArrayLike) -> Array:
    """One bit is ln 2 nats.

    bits (...) -> nats (...)
    """
    return array(bits) * math.log(2)


def _unit(base: float) -> float:
    if not base > 1:
        raise ConfigError(f"entropy: base {base} (must be above 1)")
    return 1.0 if base == math.e else math.log(base)
