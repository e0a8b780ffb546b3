"""Pictures of scaling laws: that they show the numbers of the laws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.cli.render.plots import scaling
from chainrule.scaling.fits.report import fit
from tests.scaling.fits.planted import planted
from tests.scaling.fits.test_isoflop import BUDGETS, slices


@pytest.mark.requirement("R-503")
def test_the_slope_on_logarithmic_axes_is_the_exponent(tmp_path: Path) -> None:
    main(["figures", "power-law", "--out", str(tmp_path)])
    assert (tmp_path / "power-law.png").read_bytes().startswith(b"\x89PNG")
    plain, logs = scaling.power_law().axes
    x, y = logs.lines[0].get_data()
    slope = np.polyfit(np.log(x), np.log(y), 1)[0]
    assert slope == pytest.approx(-0.1, abs=1e-9)
    assert f"-{0.1:g}" in logs.get_title()
    assert logs.get_xscale() == logs.get_yscale() == "log" and plain.get_xscale() == "linear"


def test_rules_of_allocation_and_their_slopes() -> None:
    (ax,) = scaling.allocation().axes
    slopes = [np.polyfit(*np.log(line.get_data()), 1)[0] for line in ax.lines]
    assert slopes == pytest.approx([0.5, 0.5126, 0.73], abs=1e-3)


def test_a_threshold_makes_progress_look_sudden() -> None:
    (ax,) = scaling.emergence().axes
    steps, task = (line.get_ydata() for line in ax.lines)
    np.testing.assert_allclose(task, steps**scaling.STEPS)


def test_a_fit_shows_all_runs() -> None:
    runs = planted(30)
    figure = scaling.fitted(fit(runs, "chinchilla", resamples=20), runs)
    assert len(figure.axes[0].collections[0].get_offsets()) == 30
    some = slices(0.001)
    valleys = scaling.fitted(fit(some, "isoflop", resamples=20), some).axes[0]
    assert len(valleys.get_legend().texts) == len(BUDGETS)
