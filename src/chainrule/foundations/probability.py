"""Probability: distributions, means, variances, the normal distribution, and Bayes' rule.

A distribution is an array of probabilities along its last axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations._check import Array, alike, array
from chainrule.random import generator

Outcome = TypeVar("Outcome")


# Distributions.


def distribution(p: npt.ArrayLike, name: str = "distribution") -> Array:
    """p as an array, checked: no entry below 0, and every row along the last axis sums to 1.

    p (..., V) -> (..., V)
    """
    p = array(p)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ShapeError(f"{name}: got shape {p.shape} (must list at least one probability)")
    if not (p >= 0).all():
        raise ConfigError(f"{name}: smallest probability {p.min()} (must be at least 0)")
    total = p.sum(axis=-1)
    worst = float(total.flat[np.abs(total - 1).argmax()])
    if abs(worst - 1) > 1e-6:  # tolerates the rounding of float32
        raise ConfigError(f"{name}: probabilities sum to {worst:.10g} (must be 1)")
    return p


def is_distribution(p: npt.ArrayLike) -> bool:
    """True when p is non-negative and sums to 1.

    p (..., V) -> bool
    """
    try:
        distribution(p)
    except (ConfigError, ShapeError):
        return False
    return True


def uniform(n: int) -> Array:
    """1/n for each of n outcomes.

    n -> (n,)
    """
    if n < 1:
        raise ConfigError(f"uniform: {n} outcomes (must be at least 1)")
    return np.full(n, 1 / n)


def softmax(logits: npt.ArrayLike) -> Array:
    """exp(z_i) / Σ_j exp(z_j) along the last axis; the largest logit is subtracted to avoid overflow.

    logits (..., V) -> (..., V)
    """
    z = array(logits)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def sample_categorical(p: npt.ArrayLike, size: int, seed: int | None = None) -> npt.NDArray[np.intp]:
    """`size` outcomes 0 .. V-1 drawn from p (V,): a uniform number lands in an interval of width p_i."""
    p = distribution(p, "sample_categorical")
    if p.ndim != 1:
        raise ShapeError(f"sample_categorical: got shape {p.shape} (must be one distribution)")
    edges = np.cumsum(p)
    return np.searchsorted(edges / edges[-1], generator("categorical", seed=seed).random(size), side="right")


# Mean and variance of a discrete variable, from its values and their probabilities.


def expectation(values: npt.ArrayLike, p: npt.ArrayLike) -> float:
    """Σ x p(x).

    values (n,), p (n,) -> ()
    """
    x, p = alike(values, distribution(p, "expectation"), "expectation")
    return float((x * p).sum())


def variance(values: npt.ArrayLike, p: npt.ArrayLike) -> float:
    """E[(X - E[X])²], the mean squared deviation.

    values (n,), p (n,) -> ()
    """
    return spread_attempts(values, p).squared


def variance_shortcut(values: npt.ArrayLike, p: npt.ArrayLike) -> float:
    """E[X²] - E[X]²: the same number, but it loses digits when the mean is far larger than the spread.

    values (n,), p (n,) -> ()
    """
    return expectation(array(values) ** 2, p) - expectation(values, p) ** 2


def standard_deviation(values: npt.ArrayLike, p: npt.ArrayLike) -> float:
    """√Var, in the unit of the values.

    values (n,), p (n,) -> ()
    """
    return math.sqrt(variance(values, p))


class Spread(NamedTuple):
    """Three ways to average the distance from the mean."""

    signed: float  # always 0: the two sides cancel
    absolute: float  # works, but has a corner at 0
    squared: float  # the variance: smooth, and it adds up for independent variables


def spread_attempts(values: npt.ArrayLike, p: npt.ArrayLike) -> Spread:
    """The mean signed, absolute and squared deviation: why the variance squares.

    values (n,), p (n,) -> three of ()
    """
    d = array(values) - expectation(values, p)
    return Spread(expectation(d, p), expectation(np.abs(d), p), expectation(d * d, p))


def variance_of_sum(variances: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Var(Σ w_i X_i) = Σ w_i² Var(X_i) for independent X_i: the rule behind every weight initialization.

    weights (n,), variances (n,) -> ()
    """
    v = array(variances)
    if not (v >= 0).all():
        raise ConfigError(f"variance_of_sum: smallest variance {v.min()} (must be at least 0)")
    v, w = alike(v, np.ones_like(v) if weights is None else weights, "variance_of_sum")
    return float((w * w * v).sum())


# The normal distribution.


def normal_density(x: npt.ArrayLike, mean: float = 0.0, std: float = 1.0) -> Array:
    """exp(-((x - μ) / σ)² / 2) / (σ √2π).

    x (...) -> (...)
    """
    z = standardize(x, mean, std)
    return np.asarray(np.exp(-z * z / 2) / (std * math.sqrt(2 * math.pi)))


def sample_normal(size: int, mean: float = 0.0, std: float = 1.0, seed: int | None = None) -> Array:
    """`size` draws of N(μ, σ²): standard normal draws, scaled and shifted.

    size -> (size,)
    """
    if not std >= 0:
        raise ConfigError(f"sample_normal: standard deviation {std} (must be at least 0)")
    return mean + std * generator("normal", seed=seed).standard_normal(size)


def standardize(x: npt.ArrayLike, mean: float, std: float) -> Array:
    """(x - μ) / σ: any normal variable becomes the standard one.

    x (...) -> (...)
    """
    if not std > 0:
        raise ConfigError(f"standardize: standard deviation {std} (must be above 0)")
    return (array(x) - mean) / std


def interval_probability(
    density: Callable[[Array], npt.ArrayLike], low: float, high: float, pieces: int = 2000
) -> float:
    """P(low ≤ X ≤ high) = ∫ density, by Simpson's rule on `pieces` equal pieces.

    density: (k,) -> (k,); low (), high () -> ()
    """
    if not (low <= high and math.isfinite(low) and math.isfinite(high)):
        raise ConfigError(f"interval_probability: from {low} to {high} (must be finite and in order)")
    if pieces < 2 or pieces % 2:
        raise ConfigError(f"interval_probability: {pieces} pieces (must be even, at least 2)")
    f = array(density(np.linspace(low, high, pieces + 1)))
    return float((f[0] + 4 * f[1::2].sum() + 2 * f[2:-1:2].sum() + f[-1]) * (high - low) / (3 * pieces))


class CentralLimit(NamedTuple):
    """Sums of many dice: predicted and measured moments, and a histogram of the standardized sums."""

    expected_mean: float
    expected_std: float
    sums: Array
    density: Array  # height of each bar; compare with normal_density at the middle of the bar
    edges: Array


def central_limit(
    dice: int = 100, trials: int = 10_000, sides: int = 6, seed: int | None = None
) -> CentralLimit:
    """Throw `dice` fair dice `trials` times: one die is uniform, the sum nearly normal."""
    if min(dice, trials, sides) < 1:
        raise ConfigError(f"central_limit: {dice} dice, {trials} trials, {sides} sides (must be at least 1)")
    faces = np.arange(1, sides + 1)
    mean = dice * expectation(faces, uniform(sides))
    std = math.sqrt(dice * variance(faces, uniform(sides)))
    sums = generator("dice", seed=seed).integers(1, sides + 1, size=(trials, dice)).sum(axis=1)
    # bars span whole numbers of points, so that all hold equally many possible sums
    width = max(1, round(std / 2))
    first = math.floor(mean - 4 * std) - 0.5
    edges = np.arange(first, mean + 4 * std + width, width)
    density, _ = np.histogram(sums, bins=edges, density=True)
    return CentralLimit(mean, std, array(sums), density * std, standardize(edges, mean, std))


# Bayes' rule.


def chance(event: Callable[[Outcome], bool], outcomes: Collection[Outcome]) -> float:
    """The fraction of equally likely outcomes for which the event is true."""
    if not outcomes:
        raise ConfigError("chance: 0 outcomes (must be at least 1)")
    return sum(map(event, outcomes)) / len(outcomes)


def conditional(both: float, given: float) -> float:
    """P(A|B) = P(A and B) / P(B)."""
    if not 0 < given <= 1 or not 0 <= both <= given:
        raise ConfigError(f"conditional: P(A and B) = {both}, P(B) = {given} (must be 0 ≤ both ≤ given ≤ 1)")
    return both / given


def bayes(prior: npt.ArrayLike, likelihood: npt.ArrayLike) -> Array:
    """P(h|data) ∝ P(data|h) P(h) over hypotheses (n,): the posterior, which is the prior for more data."""
    p, q = alike(distribution(prior, "bayes"), likelihood, "bayes")
    if not ((q >= 0) & (q <= 1)).all():
        raise ConfigError(f"bayes: likelihoods from {q.min()} to {q.max()} (must be from 0 to 1)")
    joint = p * q
    if joint.sum() == 0:
        raise ConfigError("bayes: no hypothesis allows the data (must have a positive probability)")
    return np.asarray(joint / joint.sum())


def sequence_probability(conditionals: npt.ArrayLike) -> float:
    """P(x1 x2 ... xn) = Π P(x_t | x_1 .. x_t-1), computed by adding logarithms.

    conditionals (T,) -> ()
    """
    p = array(conditionals)
    if not ((p >= 0) & (p <= 1)).all():
        raise ConfigError(f"sequence_probability: from {p.min()} to {p.max()} (must be from 0 to 1)")
    return float(np.exp(np.log(p).sum())) if (p > 0).all() else 0.0


def are_independent(joint: npt.ArrayLike, tolerance: float = 1e-12) -> bool:
    """Whether P(a, b) = P(a) P(b) for every cell of a joint table (A, B)."""
    table = array(joint)
    if table.ndim != 2:
        raise ShapeError(f"are_independent: got shape {table.shape} (must be a table, two axes)")
    distribution(table.reshape(-1), "are_independent")
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    return bool(np.abs(table - product).max() <= tolerance)
