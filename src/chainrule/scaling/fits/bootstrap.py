"""Intervals by resampling runs: a fit is repeated on runs drawn with replacement, and the spread is its uncertainty.

The ends are percentiles that are a little wider than 2.5 and 97.5, as Student's t is wider than the normal: for few
runs the plain percentiles cover too seldom (Hesterberg 2015, "What teachers should know about the bootstrap").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from chainrule.errors import DataError
from chainrule.random import generator
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.power import Floats
from chainrule.scaling.numeric import normal_cdf, student

Tell = Callable[[int, int], None]
T = TypeVar("T")
FEWEST = 0.5  # of the resamples that must give a fit


class Estimate(NamedTuple):
    """A number with its 95 % interval and its standard error."""

    value: float
    low: float
    high: float
    error: float

    def __str__(self) -> str:
        """0.341 [0.322, 0.360]"""
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def resampled(
    runs: Runs, fit: Callable[[Runs], T | None], n: int, seed: int, tell: Tell | None = None
) -> list[T]:
    """The fits of n resamples, the same for the same seed; what cannot be fitted (None) is left out."""
    found = []
    for number in range(n):
        rows = generator("bootstrap", number, seed=seed).integers(len(runs), size=len(runs))
        if (fitted := fit(runs.take(np.sort(rows)))) is not None:
            found.append(fitted)
        if tell:
            tell(number + 1, n)
    check_enough(len(found), n)
    return found


def check_enough(found: int, n: int) -> None:
    """Refuse an interval of what few resamples gave."""
    if found < max(2, FEWEST * n):
        raise DataError(
            f"fit: only {found} of {n} resamples could be fitted (must be half of them: bring more runs of other sizes)"
        )


def tail_of(free: int) -> float:
    """The percentile at which a 95 % interval begins, with so many degrees of freedom"""
    return normal_cdf(student(0.025, max(free, 1)))


def estimate(value: float, draws: Floats, runs: int, parameters: int) -> Estimate:
    """The value of the fit to all runs, with the interval and the error of the resamples."""
    tail = tail_of(runs - parameters)
    low, high = np.quantile(draws, [tail, 1 - tail])
    with np.errstate(over="ignore"):  # a constant that is not known at all
        return Estimate(value, float(low), float(high), float(np.std(draws, ddof=1)))
