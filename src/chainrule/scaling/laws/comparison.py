"""Methods compared by their scaling curves: a method that wins at one size may lose at another."""

from __future__ import annotations

import math
from typing import NamedTuple

from chainrule.scaling.laws.power import PowerLaw

HOURS_PER_MONTH = 365.25 * 24 / 12


def effective_compute(loss_a: float, loss_b: float, exponent: float) -> float:
    """How much more compute method A needs for the loss of B at equal compute: (L_A / L_B)^(1/α)

    >>> round(effective_compute(2.5, 2.4, 0.05), 3)
    2.262
    """
    return float((loss_a / loss_b) ** (1 / exponent))


def compound(*gains: float) -> float:
    """Independent gains multiply: two of 10 % are 21 %

    >>> round(compound(0.1, 0.1), 12)
    0.21
    """
    return math.prod(1 + gain for gain in gains) - 1


class Comparison(NamedTuple):
    """Two laws of the same quantity."""

    better_exponent: str
    """a, b, or equal"""
    crossing: float | None
    """The x beyond which the better exponent has the lower loss; None if the curves never cross"""

    def winner(self, a: PowerLaw, b: PowerLaw, x: float) -> str:
        """Which has the lower loss at x"""
        return "a" if a(x).item() < b(x).item() else "b"


def compare(a: PowerLaw, b: PowerLaw) -> Comparison:
    """Exponents decide in the long run, whatever single points say; floors are left out of the crossing."""
    if a.exponent == b.exponent:
        return Comparison("equal", None)
    log = (b.exponent * math.log(b.scale) - a.exponent * math.log(a.scale)) / (b.exponent - a.exponent)
    crossing = math.exp(log) if log < 700 else math.inf
    return Comparison("a" if a.exponent > b.exponent else "b", crossing)


def money(devices: int, hours: float, price: float) -> float:
    """devices x hours x price per hour

    >>> money(25_000, 3 * HOURS_PER_MONTH, 2.0)
    109575000.0
    """
    return devices * hours * price
