"""Power laws fitted: by least squares, with a floor; their intervals cover what was planted."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import ChainruleWarning, DataError
from chainrule.scaling.fits import Runs, fit_power, fit_power_with_floor, predict_power
from chainrule.scaling.laws import PowerLaw
from tests.vectors import vector


@pytest.mark.requirement("R-429")
def test_least_squares_on_logarithms() -> None:
    v = vector("der-power-law-fit")
    found = fit_power(v.inputs["N"], v.inputs["L"])
    alpha, a = found.estimates["alpha"], found.estimates["a"]
    v.check({"alpha": alpha.value, "a": a.value, "se_alpha": alpha.error})


@pytest.mark.requirement("R-429")
def test_a_run_that_was_held_out_is_predicted() -> None:
    law, x = PowerLaw.of_prefactor(20.0, 0.1), np.logspace(6, 9.5, 8)
    y = law(x) * np.exp(np.random.default_rng(1).normal(0, 0.01, 8))
    found = predict_power(fit_power(x[:-1], y[:-1]), float(x[-1]))
    assert found.loss.value == pytest.approx(y[-1], rel=0.05)
    assert found.loss.low < y[-1] < found.loss.high


@pytest.mark.requirement("R-429")
def test_ninety_five_of_a_hundred_intervals_cover() -> None:
    truth, x, covered = 0.08, np.logspace(5, 9, 6), 0
    rng = np.random.default_rng(0)
    for _ in range(400):
        y = PowerLaw(1e13, truth)(x) * np.exp(rng.normal(0, 0.01, 6))
        each = fit_power(x, y).estimates["alpha"]
        covered += each.low <= truth <= each.high
    assert 0.90 <= covered / 400 <= 0.99


@pytest.mark.requirement("R-436")
def test_one_three_and_ten_percent_predict_the_whole() -> None:
    law, target = PowerLaw.of_prefactor(30.0, 0.07), 1e12
    x = target * np.array([0.01, 0.03, 0.1])
    y = law(x) * np.array([1.001, 0.999, 1.0005])
    found = predict_power(fit_power(x, y), target)
    assert found.loss.value == pytest.approx(law(target).item(), rel=0.01)
    assert found.loss.low <= law(target).item() <= found.loss.high


@pytest.mark.requirement("R-441")
def test_the_interval_grows_with_the_distance() -> None:
    x = np.logspace(6, 9, 7)
    y = PowerLaw(1e13, 0.08)(x) * np.exp(np.random.default_rng(2).normal(0, 0.01, 7))
    fit = fit_power(x, y)
    near, far = (predict_power(fit, at).loss for at in (2e9, 9e9))
    assert far.high / far.low > near.high / near.low > 1


@pytest.mark.requirement("R-440")
def test_more_than_a_decade_beyond_is_speculation() -> None:
    x = np.logspace(6, 9, 7)
    fit = fit_power(x, PowerLaw(1e13, 0.08)(x) * np.array([1, 1.01, 0.99, 1, 1.01, 0.99, 1]))
    assert not predict_power(fit, 9.9e9).speculation
    with pytest.warns(ChainruleWarning, match=r"2\.0 decades outside of the data: speculation"):
        assert predict_power(fit, 1e11).speculation


@pytest.mark.requirement("R-427")
def test_a_floor_is_found() -> None:
    law, x = PowerLaw(1e9, 0.3, floor=1.5), np.logspace(5, 10, 16)
    y = law(x) * np.exp(np.random.default_rng(3).normal(0, 0.003, 16))
    found = fit_power_with_floor(Runs.of(y, params=x), "params", resamples=60)
    for name, value in (("E", 1.5), ("alpha", 0.3)):
        assert found.estimates[name].low <= value <= found.estimates[name].high
    assert found.law.floor == pytest.approx(1.5, rel=0.1)
    assert fit_power(x, y).law.exponent < 0.2  # without a floor the exponent comes out too small


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([1, 2], [2, 1], "2 different sizes"),
        ([1, 10, 100], [1, 2, 3], "does not fall"),
        ([1, 2, 3], [1, 2], "as many"),
        ([1, 2, -3], [3, 2, 1], "positive numbers"),
    ],
)
def test_what_cannot_be_fitted(x: list[float], y: list[float], said: str) -> None:
    with pytest.raises(DataError, match=said):
        fit_power(x, y)
