"""A power law: on logarithmic axes a straight line, and every tenfold increase buys the same share of what is left.

    L(x) = L_inf + (x_c / x)^α          ln(L - L_inf) = α ln x_c - α ln x

At x = x_c the reducible part is 1 nat; it never reaches 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError
from chainrule.validate import Check

Floats = npt.NDArray[np.float64]
DECADE = float(np.log(10.0))


def decades(ratio: npt.ArrayLike) -> Floats:
    """A ratio (...) in powers of ten (...)

    >>> decades(1000.0).round(9).item()
    3.0
    """
    return np.asarray(np.log(ratio) / DECADE)


@dataclass(frozen=True)
class PowerLaw:
    """Loss in nats as a function of one quantity x: parameters, tokens or compute.

    >>> law = PowerLaw(scale=8.8e13, exponent=0.076)
    >>> round(law(1e9).item(), 3)
    2.376
    """

    scale: float
    """x_c, where the reducible loss is 1 nat"""
    exponent: float
    """α"""
    floor: float = 0.0
    """L_inf, which no x goes below"""

    def __post_init__(self) -> None:
        check = Check("power law", self)
        check.positive("scale", "exponent")
        check.not_negative("floor")

    @classmethod
    def of_prefactor(cls, a: float, exponent: float, floor: float = 0.0) -> PowerLaw:
        """The law a x^-α"""
        return cls(a ** (1 / exponent), exponent, floor)

    @property
    def prefactor(self) -> float:
        """a of a x^-α"""
        return float(self.scale**self.exponent)

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """x (...) -> loss (...)"""
        return self.floor + (self.scale / np.asarray(x, float)) ** self.exponent

    def reduction(self, factor: float) -> float:
        """The share of the reducible loss that is saved where x is `factor` times as large: 1 - factor^-α

        >>> round(PowerLaw(1.0, 0.1).reduction(10), 3)
        0.206
        """
        return float(1 - factor**-self.exponent)

    def factor_for(self, ratio: float) -> float:
        """How many times as large x must be for a reducible loss that is `ratio` times smaller: ratio^(1/α)"""
        return float(ratio ** (1 / self.exponent))

    def needed(self, loss: float) -> float:
        """The x at which the loss is reached

        >>> law = PowerLaw(8.8e13, 0.076, floor=1.5)
        >>> round(law(law.needed(3.0)).item(), 12)
        3.0
        """
        if loss <= self.floor:
            raise ConfigError(
                f"power law: loss {loss:g} is not above the floor {self.floor:g} (never reached)"
            )
        return float(self.scale * (loss - self.floor) ** (-1 / self.exponent))


def table(law: PowerLaw, xs: npt.ArrayLike) -> list[dict[str, Any]]:
    """Loss at each x, and what each is better than the one before: in nats, which shrink, and as a share

    xs (n,) -> n rows
    """
    losses = law(xs)
    before = np.concatenate([[np.nan], losses[:-1]])
    return [
        {"x": float(x), "loss": float(loss), "drop": float(old - loss), "share": float(1 - loss / old)}
        for x, loss, old in zip(np.asarray(xs, float), losses, before, strict=True)
    ]
