"""Intervals by resampling."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import DataError
from chainrule.scaling.fits.bootstrap import Estimate, estimate, resampled
from chainrule.scaling.fits.table import Runs


def test_each_resample_has_as_many_runs_drawn_from_all() -> None:
    runs = Runs.of(np.arange(1.0, 11.0), params=np.arange(1.0, 11.0))
    told: list[tuple[int, int]] = []
    drawn = resampled(runs, lambda some: tuple(some.loss), 50, seed=0, tell=lambda *done: told.append(done))
    assert len(drawn) == 50 and all(len(each) == 10 and set(each) <= set(runs.loss) for each in drawn)
    assert len(set(drawn)) > 45 and any(len(set(each)) < 10 for each in drawn)
    assert told[-1] == (50, 50)
    assert resampled(runs, lambda some: tuple(some.loss), 50, seed=0) == drawn
    assert resampled(runs, lambda some: tuple(some.loss), 50, seed=1) != drawn


def test_what_cannot_be_fitted_is_left_out_up_to_a_half() -> None:
    runs = Runs.of([1.0, 2.0, 3.0], params=[1.0, 2.0, 3.0])
    calls = iter(range(100))
    assert len(resampled(runs, lambda _: next(calls) % 2 or None, 20, seed=0)) == 10
    with pytest.raises(DataError, match="only 0 of 20 resamples"):
        resampled(runs, lambda _: None, 20, seed=0)


def test_the_interval_of_the_mean_is_that_of_student() -> None:
    draws = np.random.default_rng(0).normal(5.0, 2.0, 200_000)
    many, few = estimate(5.0, draws, 10_000, 1), estimate(5.0, draws, 6, 1)
    assert many.low == pytest.approx(5 - 1.96 * 2, abs=0.05) and many.error == pytest.approx(2.0, rel=0.01)
    assert few.high == pytest.approx(5 + 2.571 * 2, abs=0.1)  # t of five degrees of freedom
    assert str(Estimate(0.341, 0.322, 0.36, 0.01)) == "0.341 [0.322, 0.36]"
