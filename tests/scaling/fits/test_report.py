"""A fit with all that is known of it: as a file it is the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from chainrule.errors import ConfigError, DataError
from chainrule.scaling.fits import Runs
from chainrule.scaling.fits.report import FORMS, Report, fit
from chainrule.scaling.laws import PowerLaw
from tests.scaling.fits.planted import planted
from tests.scaling.fits.test_isoflop import slices


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_the_whole_fit(form: str, tmp_path: Path) -> None:
    found = fit(slices(0.001) if form == "isoflop" else planted(40), form, "flops", resamples=20)
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(found.to_dict()))
    assert Report.read(path) == found
    if form == "isoflop":
        with pytest.raises(ConfigError, match="has no law"):
            found.predict(flops=1e21)
    else:
        sizes = {"params": 1.5e10, "tokens": 1e11} if form in ("chinchilla", "kaplan") else {"flops": 3e21}
        assert Report.read(path).predict(**sizes) == found.predict(**sizes)


def test_the_largest_run_is_predicted_by_the_others() -> None:
    x = np.logspace(6, 9, 8)
    y = PowerLaw(1e13, 0.08)(x) * np.exp(np.random.default_rng(0).normal(0, 0.01, 8))
    found = fit(Runs.of(y, params=x), "power").validation
    assert found["measured"] == y[-1]
    assert found["low"] < y[-1] < found["high"]


def test_wrong_questions() -> None:
    found = fit(planted(20), "chinchilla", resamples=20)
    with pytest.raises(ConfigError, match="two of params, tokens and flops"):
        found.predict(params=1e9)
    with pytest.raises(ConfigError, match="did you mean chinchilla"):
        fit(planted(20), "chinchila")
    with pytest.raises(ConfigError, match="quantity 'size'"):
        fit(planted(20), "power", "size")
    power = fit(planted(20), "power", "flops")
    with pytest.raises(ConfigError, match="the law is in flops"):
        power.predict(params=1e9)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"numbers": ["a"]}', '{"numbers": [], "remarks": [{}]}']
)
def test_files_that_are_no_fits(content: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text(content)
    with pytest.raises(DataError, match="is not a fit"):
        Report.read(path)
