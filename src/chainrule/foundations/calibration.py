"""Calibration: the confidence of predictions against their accuracy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError, ShapeError
from chainrule.foundations._check import Array


def reliability_bins(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: int = 10
) -> tuple[Array, Array, Array]:
    """Mean confidence, accuracy and count in each of `bins` intervals of confidence.

    confidence (n,), correct (n,) -> three of (bins,)
    """
    stated = np.asarray(confidence, dtype=np.float64).ravel()
    outcome = np.asarray(correct, dtype=np.float64).ravel()
    if not 0 < stated.size == outcome.size:
        raise ShapeError(
            f"calibration: {stated.size} confidences, {outcome.size} outcomes (must be equal, and not 0)"
        )
    if not (stated.min() >= 0 and stated.max() <= 1):
        raise DataError(
            f"calibration: confidence from {stated.min():g} to {stated.max():g} (must be from 0 to 1)"
        )
    place = np.minimum((stated * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = np.maximum(count, 1)
    return (
        np.bincount(place, weights=stated, minlength=bins) / filled,
        np.bincount(place, weights=outcome, minlength=bins) / filled,
        count.astype(np.float64),
    )


def expected_calibration_error(confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: int = 10) -> float:
    """Mean distance of confidence c and accuracy a: Σ (nᵦ/n) |cᵦ - aᵦ|; 0 if calibrated.

    confidence (n,), correct (n,) -> ()
    """
    stated, observed, count = reliability_bins(confidence, correct, bins)
    return float(np.sum(count * np.abs(stated - observed)) / count.sum())
