"""Doubts: each is raised where it is planted, and none where all is well."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.scaling.fits import Doubt, Runs, remarks
from chainrule.scaling.fits.power import fit_power
from chainrule.scaling.fits.report import fit
from chainrule.scaling.laws import PowerLaw
from tests.scaling.fits.planted import planted


def codes(x: np.ndarray, y: np.ndarray) -> set[Doubt]:
    found = fit_power(x, y)
    return {
        each.code for each in remarks(Runs.of(y, params=x), {"params": x}, found.residuals, found.estimates)
    }


NOISE = np.random.default_rng(0).normal(0, 0.004, 12)


def test_nothing_is_doubtful_about_a_good_fit() -> None:
    x = np.logspace(6, 9.5, 12)
    assert codes(x, PowerLaw(1e13, 0.08)(x) * np.exp(NOISE)) == set()


@pytest.mark.requirement("R-430")
def test_less_than_two_decades() -> None:
    x = np.logspace(6, 7.5, 12)
    assert Doubt.FEW_DECADES in codes(x, PowerLaw(1e13, 0.08)(x) * np.exp(NOISE))


@pytest.mark.requirement("R-430")
def test_small_models_that_were_trained_too_briefly() -> None:
    x = np.logspace(6, 9.5, 12)
    y = PowerLaw(1e13, 0.08)(x) * np.exp(NOISE)
    y[:3] *= 1.08
    assert Doubt.SMALL_END in codes(x, y)


@pytest.mark.requirement("R-430")
def test_large_models_that_bend_away() -> None:
    x = np.logspace(6, 9.5, 12)
    assert Doubt.LARGE_END in codes(x, PowerLaw(1e9, 0.4, floor=2.0)(x) * np.exp(NOISE))


def test_an_outlier() -> None:
    x = np.logspace(6, 9.5, 12)
    y = PowerLaw(1e13, 0.08)(x) * np.exp(NOISE)
    y[6] *= 1.2
    assert Doubt.OUTLIER in codes(x, y)


def test_sizes_that_rise_together_cannot_be_separated() -> None:
    N = np.logspace(6, 10, 30)
    runs = planted(30)
    loss = runs.loss
    together = Runs.of(np.sort(loss)[::-1], params=N, tokens=20 * N)
    said = {each.code for each in fit(together, "chinchilla", resamples=20).remarks}
    assert Doubt.INSEPARABLE in said
    assert Doubt.INSEPARABLE not in {each.code for each in fit(runs, "chinchilla", resamples=20).remarks}


def test_the_largest_run_is_off() -> None:
    x = np.logspace(6, 9.5, 12)
    y = PowerLaw(1e13, 0.08)(x) * np.exp(NOISE)
    y[-1] *= 1.1
    found = fit(Runs.of(y, params=x), "power")
    assert Doubt.LARGEST_OFF in {each.code for each in found.remarks}
    assert found.validation["measured"] == y[-1]
