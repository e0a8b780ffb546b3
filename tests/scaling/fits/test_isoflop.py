"""Valleys at equal compute, and the envelope."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import DataError
from chainrule.scaling.fits import Runs, envelope, fit_isoflop
from chainrule.scaling.fits.isoflop import near_best, valley
from chainrule.scaling.laws import optimal
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED as LAW

BUDGETS = (1e18, 1e19, 1e20, 1e21)


def slices(noise: float = 0.0, factors: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)) -> Runs:
    rng = np.random.default_rng(0)
    C = np.repeat(BUDGETS, len(factors))
    N = np.concatenate([optimal(LAW, budget).params * np.array(factors) for budget in BUDGETS])
    return Runs.of(LAW(N, C / (6 * N)) * np.exp(rng.normal(0, noise, len(N))), params=N, flops=C)


def test_the_best_sizes_follow_the_law() -> None:
    found = fit_isoflop(slices(), resamples=30)
    assert [v.flops for v in found.valleys] == list(BUDGETS)
    for v in found.valleys:
        assert v.params == pytest.approx(optimal(LAW, v.flops).params, rel=0.1)
        at = np.log(v.params)
        assert np.polyval(v.curve, at) == pytest.approx(v.loss, rel=1e-9)
    assert found.estimates["a"].value == pytest.approx(LAW.a, abs=0.01)
    assert found.best_params(1e20) == pytest.approx(optimal(LAW, 1e20).params, rel=0.1)
    assert found.estimates["b"].value == pytest.approx(1 - found.estimates["a"].value)


def test_noise_widens_the_interval_which_still_covers() -> None:
    found = fit_isoflop(slices(noise=0.002, factors=(0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0)), resamples=60)
    a = found.estimates["a"]
    assert a.low < LAW.a < a.high and a.high - a.low > 0.005


def test_a_budget_without_a_lowest_point_is_left_out() -> None:
    some = slices()
    loss = some.loss.copy()
    loss[:5] = np.linspace(3, 2, 5)  # of the first budget the largest is the best: no valley inside
    found = fit_isoflop(Runs.of(loss, params=some.params, flops=some.flops), resamples=20)
    assert len(found.valleys) == 3
    assert len(found.left_out) == 1 and found.left_out[0].startswith("1e+18 FLOPs")
    with pytest.raises(DataError, match="0 budgets with a valley"):
        fit_isoflop(Runs.of([3, 2.5, 2.2], params=[1e6, 1e7, 1e8], flops=[1e15] * 3))


def test_only_sizes_near_the_best_of_their_budget() -> None:
    wide = slices(factors=(0.25, 0.5, 1.0, 2.0, 4.0, 60.0, 300.0))
    near = near_best(wide, 4)
    assert len(near) == 5 * len(BUDGETS) and "8 runs of sizes beyond 4 times the best" in near.dropped[-1]
    plain, mended = fit_isoflop(slices(), resamples=20), fit_isoflop(near, resamples=20)
    assert mended.estimates["a"].value == pytest.approx(plain.estimates["a"].value)
    assert near_best(near, 16).dropped == near.dropped
    with pytest.raises(DataError, match="must be above 1"):
        near_best(wide, 1)


def test_a_parabola_that_opens_downwards_has_no_valley() -> None:
    assert valley(Runs.of([2.0, 3.0, 2.0], params=[1e6, 1e7, 1e8], flops=[1e15] * 3)) is None


def test_the_envelope_is_what_no_cheaper_run_beats() -> None:
    runs = Runs.of([3.0, 3.2, 2.5, 2.6, 2.4], params=[1, 2, 3, 4, 5], flops=[1, 2, 3, 4, 5])
    assert envelope(runs).loss.tolist() == [3.0, 2.5, 2.4]
