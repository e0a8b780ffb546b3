"""A power law fitted to losses at several sizes.

ln L = β_0 + β_1 ln x      by ordinary least squares: α = -β_1, a = exp(β_0), with their standard errors
L = L_inf + (x_c / x)^α    by least squares of ln L, from several floors
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError
from chainrule.scaling.fits.bootstrap import Estimate, Tell, estimate, resampled
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.power import Floats, PowerLaw
from chainrule.scaling.numeric import least_squares, student

FLOORS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)  # shares of the lowest loss that a fit of the floor begins with


@dataclass(frozen=True)
class PowerFit:
    """A law, the intervals of its numbers, and how far each run is from it."""

    law: PowerLaw
    estimates: dict[str, Estimate]
    x: Floats
    residuals: Floats
    """ln L measured - ln L of the law"""
    draws: list[PowerLaw]
    """Laws as likely as this one: what a prediction takes its interval from"""
    noise: float = 0.0
    """Standard deviation of ln L around the law"""
    free: int = 1
    """Degrees of freedom: runs beyond the numbers of the law"""


def fit_power(x: npt.ArrayLike, loss: npt.ArrayLike) -> PowerFit:
    """Least squares on logarithms, with the intervals of Student's t

    >>> fit = fit_power([1e6, 1e7, 1e8], [4.0, 3.2, 2.5])
    >>> round(fit.law.exponent, 3)
    0.102
    """
    x, y = _checked(x, loss)
    slope, start, residuals, noise = line(np.log(x), np.log(y))
    if slope.value >= 0:
        raise DataError(f"fit: the loss does not fall with x (slope {slope.value:+.3g}; must be negative)")
    a = math.exp(start.value)
    estimates = {
        "alpha": Estimate(-slope.value, -slope.high, -slope.low, slope.error),
        "a": Estimate(a, math.exp(start.low), math.exp(start.high), a * start.error),
    }
    return PowerFit(PowerLaw.of_prefactor(a, -slope.value), estimates, x, residuals, [], noise, len(x) - 2)


class Line(NamedTuple):
    """A straight line by least squares."""

    slope: Estimate
    start: Estimate
    residuals: Floats
    noise: float


def line(u: Floats, v: Floats) -> Line:
    """v against u, with the intervals of Student's t"""
    n, mean = len(u), float(u.mean())
    spread = float(((u - mean) ** 2).sum())
    slope = float(((u - mean) * (v - v.mean())).sum() / spread)
    start = float(v.mean() - slope * mean)
    residuals = v - start - slope * u
    noise = math.sqrt(float((residuals**2).sum()) / (n - 2)) if n > 2 else math.nan
    width = student(0.975, n - 2)

    def known(value: float, error: float) -> Estimate:
        return Estimate(value, value - width * error, value + width * error, error)

    first = noise * math.sqrt(1 / n + mean**2 / spread)
    return Line(known(slope, noise / math.sqrt(spread)), known(start, first), residuals, noise)


def predicted(fit: PowerFit, x: float) -> Estimate:
    """The loss at x by a fit of least squares, with the interval of a new run there

    It grows with the distance from the data: both the line and the run are uncertain.
    """
    u = np.log(fit.x)
    n, mean = len(u), float(u.mean())
    spread = float(((u - mean) ** 2).sum())
    error = fit.noise * math.sqrt(1 + 1 / n + (math.log(x) - mean) ** 2 / spread)
    width = student(0.975, n - 2)
    value = fit.law(x).item()
    return Estimate(value, value * math.exp(-width * error), value * math.exp(width * error), value * error)


def fit_power_with_floor(
    runs: Runs, quantity: str, *, resamples: int = 400, seed: int = 0, tell: Tell | None = None
) -> PowerFit:
    """A law with an irreducible loss, with intervals by resampling the runs."""
    runs.known(quantity)
    x, y = _checked(getattr(runs, quantity), runs.loss, least=4)
    law = _with_floor(x, y)
    if law is None:
        raise DataError("fit: no power law with a floor fits these losses (do they fall with size?)")

    def again(drawn: Runs) -> PowerLaw | None:
        return _with_floor(getattr(drawn, quantity), drawn.loss, law)

    draws = resampled(runs, again, resamples, seed, tell)
    numbers: dict[str, Any] = {
        "alpha": lambda law: law.exponent,
        "a": lambda law: law.prefactor,
        "E": lambda law: law.floor,
    }
    estimates = {
        name: estimate(read(law), np.array([read(d) for d in draws]), len(x), 3)
        for name, read in numbers.items()
    }
    residuals = np.log(y) - np.log(law(x))
    free = max(len(x) - 3, 1)
    noise = math.sqrt(float((residuals**2).sum()) / free)
    return PowerFit(law, estimates, x, residuals, draws, noise, free)


def _with_floor(x: Floats, y: Floats, start: PowerLaw | None = None) -> PowerLaw | None:
    """The best of several fits that begin with other floors; None if sizes do not differ enough."""
    if len(np.unique(x)) < 3:
        return None
    u, target, lowest = np.log(x), np.log(y), float(y.min())

    def unpacked(t: Floats) -> tuple[Floats, Floats]:
        """The reducible part, and the floor below the lowest loss"""
        return np.exp(t[0] - np.exp(t[1]) * u), lowest / (1 + np.exp(-t[2]))

    def residuals(t: Floats) -> Floats:
        reducible, floor = unpacked(t)
        return np.log(reducible + floor) - target

    starts = []
    if start is not None and 0 < start.floor < lowest:
        share = start.floor / lowest
        starts.append([math.log(start.prefactor), math.log(start.exponent), math.log(share / (1 - share))])
    for share in FLOORS if not starts else (0.0, 0.6, 0.9):
        slope, first = np.polyfit(u, np.log(y - share * lowest), 1)
        if slope < 0:
            floor = math.log(max(share, 1e-3) / (1 - max(share, 1e-3)))
            starts.append([first, math.log(-slope), floor])
    fits = [least_squares(residuals, begin, method="trf", max_nfev=300) for begin in starts]
    if not fits:
        return None
    best = min(fits, key=lambda fit: fit[1])[0]
    exponent = math.exp(best[1])
    floor = lowest / (1 + math.exp(-best[2]))
    if not (1e-6 < exponent < 50 and abs(best[0] / exponent) < 600):
        return None
    return PowerLaw.of_prefactor(math.exp(best[0]), exponent, floor)


def _checked(x: npt.ArrayLike, loss: npt.ArrayLike, least: int = 3) -> tuple[Floats, Floats]:
    x, y = np.asarray(x, float), np.asarray(loss, float)
    if x.shape != y.shape or x.ndim != 1:
        raise DataError(f"fit: {x.shape} sizes for {y.shape} losses (must be as many)")
    if len(np.unique(x)) < least:
        raise DataError(f"fit: {len(np.unique(x))} different sizes (must be at least {least})")
    if not (np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)).all():
        raise DataError("fit: sizes and losses must be positive numbers")
    return x, y
