"""From loss to what a model can do: accuracy is often a sigmoid of the loss, and a threshold makes it jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError
from chainrule.scaling.laws.power import Floats
from chainrule.validate import Check


def composite(p: npt.ArrayLike, k: int) -> Floats:
    """The chance of k steps in a row that succeed with p each: p^k

    p (...) -> (...)

    A smooth rise of p looks like a sudden ability where k is large.

    >>> composite([0.6, 0.9], 3).round(3).tolist()
    [0.216, 0.729]
    """
    return np.asarray(p, float) ** k


def log_chance(p: npt.ArrayLike, k: int) -> Floats:
    """The smooth metric of the same task, ln of the chance: k ln p, which rises steadily where p^k seems to jump

    p (...) -> (...)
    """
    return k * np.log(np.asarray(p, float))


@dataclass(frozen=True)
class Sigmoid:
    """accuracy = chance + (best - chance) σ((middle - loss) / width)"""

    chance: float
    best: float
    middle: float
    """The loss at which half of the way is done"""
    width: float

    def __post_init__(self) -> None:
        Check("sigmoid", self).positive("width")

    def __call__(self, loss: npt.ArrayLike) -> Floats:
        """loss (...) -> accuracy (...)"""
        z = (self.middle - np.asarray(loss, float)) / self.width
        return np.asarray(self.chance + (self.best - self.chance) * 0.5 * (1 + np.tanh(z / 2)))


def fit_sigmoid(losses: npt.ArrayLike, accuracies: npt.ArrayLike) -> Sigmoid:
    """The sigmoid nearest to measured accuracies, by least squares from several starts

    losses (n,), accuracies (n,) -> a curve
    """
    from chainrule.scaling.numeric import least_squares

    x, y = np.asarray(losses, float), np.asarray(accuracies, float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 5:
        raise DataError(f"sigmoid: {x.shape} losses, {y.shape} accuracies (must be as many, at least 5)")
    spread = float(np.ptp(x)) or 1.0

    def residuals(t: Floats) -> Floats:
        chance, best, middle, log_width = t
        return chance + (best - chance) * 0.5 * (1 + np.tanh((middle - x) / np.exp(log_width) / 2)) - y

    starts = [
        np.array([y.min(), y.max(), x.min() + place * spread, np.log(spread * width)])
        for place in (0.25, 0.5, 0.75)
        for width in (0.05, 0.2)
    ]
    found, _ = min((least_squares(residuals, start) for start in starts), key=lambda fit: fit[1])
    chance, best, middle, log_width = found.tolist()
    return Sigmoid(chance, best, middle, float(np.exp(log_width)))
