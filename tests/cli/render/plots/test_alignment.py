"""The figures of alignment show the right numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainrule.cli.main import main
from chainrule.cli.render.plots import alignment
from chainrule.lessons.alignment.methods import small_world


@pytest.mark.requirement("R-502")
def test_the_sigmoid_of_bradley_and_terry(tmp_path: Path) -> None:
    ax = alignment.bradley_terry().axes[0]
    x, y = ax.lines[0].get_data()
    assert np.interp([0, 2], x, y) == pytest.approx([0.5, 0.8808], abs=1e-4)
    assert [text.get_text() for text in ax.texts] == ["(0, 0.50)", "(2, 0.88)"]
    main(["figures", "bradley-terry", "--out", str(tmp_path)])
    assert (tmp_path / "bradley-terry.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_lies_above_the_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "STEPS", 4)
    curve, *points = alignment.frontier().axes[0].lines
    kls, means = map(np.asarray, curve.get_data())
    order = np.argsort(kls)
    assert len(points) == 3
    for line in points:
        x, y = map(np.asarray, line.get_data())
        assert (y <= np.interp(x, kls[order], means[order], left=np.inf) + 1e-3).all()


def test_distances_and_the_effect_of_beta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "STEPS", 10)
    lines = alignment.distance().axes[0].lines
    assert [line.get_label() for line in lines[:4]] == ["DPO", "PPO", "REINFORCE", "GRPO"]
    assert all(line.get_ydata()[0] == pytest.approx(lines[0].get_ydata()[0]) for line in lines[:4])
    rewards, kls = alignment.beta_effect().axes
    assert (np.diff(rewards.lines[0].get_ydata()) < 0).all() and (np.diff(kls.lines[0].get_ydata()) < 0).all()


@pytest.mark.requirement("R-417")
def test_two_estimators_have_no_bias() -> None:
    means, noise = alignment.kl_estimators().axes
    k1, k2, k3 = (line.get_ydata() for line in means.lines)
    exact = np.asarray(means.lines[0].get_xdata())
    assert k1 == pytest.approx(exact, abs=1e-6) and k3 == pytest.approx(exact, abs=1e-6)
    assert (np.asarray(k2)[exact > 0.5] > exact[exact > 0.5] + 0.03).all()
    near = int(np.argmin(exact))
    assert noise.lines[2].get_ydata()[near] < noise.lines[0].get_ydata()[near] / 10
    assert small_world().kl(small_world().optimum(0.5)) == pytest.approx(0.751, abs=1e-3)
