"""Learning-rate search: an exponential sweep, and the flat part of its loss curve.

Derivation: docs/derivations/optimizers.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chainrule.errors import ConfigError, DataError
from chainrule.types import Array


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep: `losses[i]` after one step at `rates[i]`; `start` is the loss before the first step."""

    rates: Array
    losses: Array
    start: float


@dataclass(frozen=True)
class Choice:
    """Where the loss curve is flat and below its start, from `low` to `high`; `best` is at its minimum."""

    low: float
    high: float
    best: float
    smoothed: Array


def sweep(
    step: Callable[[float], float], start: float, *, low: float = 1e-3, high: float = 1.0, count: int = 100
) -> Sweep:
    """Take one training step per rate, rates growing by a constant ratio from `low` to `high`.

    `step(rate)` updates the model on the next mini-batch and returns its loss after it; `start` is the loss
    before. A loss that is not finite ends the sweep.
    """
    if not 0 < low < high:
        raise ConfigError(f"sweep: rates from {low!r} to {high!r} (must be positive and rising)")
    if count < 2:
        raise ConfigError(f"sweep: {count} rates (must be at least 2)")
    rates = np.geomspace(low, high, count)  # [OP.26]
    losses: list[float] = []
    for rate in rates:
        loss = float(step(float(rate)))
        if not math.isfinite(loss):
            break
        losses.append(loss)
    return Sweep(rates[: len(losses)], np.array(losses), start)


def choose(seen: Sweep, *, percentile: float = 10.0, window: int = 5) -> Choice:
    """Rates where abs(d loss / d rate) is among its smallest `percentile` percent and the loss below `start`.

    The left end of the curve is flat too, since tiny steps change nothing: hence the second condition. If no flat rate
    is below the start, the range is the single rate at the minimum.
    """
    if not 0 < percentile <= 100:
        raise ConfigError(f"choose: percentile is {percentile!r} (must be above 0 and at most 100)")
    if len(seen.rates) < max(window, 2):
        raise DataError(
            f"choose: {len(seen.rates)} finite losses, a window of {window} (sweep smaller rates)"
        )
    smoothed = _smooth(seen.losses, window)
    below = smoothed < seen.start
    if not below.any():
        raise DataError(
            f"choose: no rate from {seen.rates[0]:g} to {seen.rates[-1]:g} brought the loss below its start "
            f"{seen.start:g} (sweep smaller rates)"
        )
    slope = np.abs(np.gradient(smoothed, seen.rates))
    flat = slope <= np.percentile(slope, percentile)  # [OP.27]
    best = seen.rates[np.argmin(smoothed)]
    chosen = seen.rates[flat & below] if (flat & below).any() else np.array([best])
    return Choice(float(chosen[0]), float(chosen[-1]), float(best), smoothed)


def _smooth(values: Array, window: int) -> Array:
    """Moving average; at the ends over the part of the window that exists."""
    ones = np.ones(window)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")
