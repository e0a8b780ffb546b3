"""Confidence against accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import DataError, ShapeError
from chainrule.foundations.calibration import expected_calibration_error, reliability_bins


@pytest.mark.requirement("R-112")
def test_calibration() -> None:
    rng = np.random.default_rng(3)
    confidence = rng.uniform(size=20_000)
    honest = rng.uniform(size=20_000) < confidence
    boastful = rng.uniform(size=20_000) < 0.6 * confidence
    assert expected_calibration_error(confidence, honest) < 0.02
    assert expected_calibration_error(confidence, boastful) > 0.1
    stated, observed, count = reliability_bins(confidence, honest, bins=5)
    assert count.sum() == 20_000
    np.testing.assert_allclose(stated, [0.1, 0.3, 0.5, 0.7, 0.9], atol=0.01)
    np.testing.assert_allclose(observed, stated, atol=0.03)


def test_calibration_by_hand() -> None:
    stated, observed, count = reliability_bins([0.0, 0.05, 0.95, 1.0], [0, 0, 1, 0], bins=10)
    assert count.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert (stated[0], stated[9]) == pytest.approx((0.025, 0.975))
    assert observed[9] == 0.5
    error = expected_calibration_error([0.0, 0.05, 0.95, 1.0], [0, 0, 1, 0])
    assert error == pytest.approx((0.025 + 0.475) / 2)
    with pytest.raises(ShapeError, match="calibration: 0 confidences, 0 outcomes"):
        reliability_bins([], [])
    with pytest.raises(DataError, match="calibration: confidence from 2 to 2"):
        reliability_bins([2.0], [1])
