"""What scipy does for the fits: least squares and the quantiles of distributions. It is an extra of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.errors import ConfigError
from chainrule.scaling.laws.power import Floats


def least_squares(residuals: Callable[[Floats], Floats], start: Any, **how: Any) -> tuple[Floats, float]:
    """Where the residuals of `start` lead downhill, and the cost there"""
    with np.errstate(all="ignore"):  # a start that leads nowhere is not the best one
        found = _scipy("optimize").least_squares(residuals, np.asarray(start, float), **how)
    return np.asarray(found.x), float(found.cost)


def student(p: float, free: int) -> float:
    """The quantile p of Student's t; nan without degrees of freedom"""
    return float(_scipy("stats").t.ppf(p, free)) if free > 0 else float("nan")


def normal_cdf(z: float) -> float:
    """The share of a normal distribution below z"""
    return float(_scipy("stats").norm.cdf(z))


def _scipy(part: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"scipy.{part}")
    except ImportError as error:
        raise ConfigError(
            "fits: need scipy, which is not installed (pip install 'chainrule[scale]')"
        ) from error
