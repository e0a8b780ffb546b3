"""From loss to ability."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import DataError
from chainrule.scaling.laws.capability import Sigmoid, composite, fit_sigmoid, log_chance
from tests.vectors import vector


@pytest.mark.requirement("R-442")
def test_a_task_of_several_steps_seems_to_emerge() -> None:
    v = vector("004-14.5.2-composite")
    v.check((100 * composite(v.inputs["base"], v.inputs["n"])).tolist())
    p = np.linspace(0.5, 0.99, 50)  # a steady rise of each step
    sharp, smooth = composite(p, 30), log_chance(p, 30)
    half = (sharp < 0.5 * sharp.max()).mean()
    assert half > 0.9  # nearly all of the rise is in the last tenth
    assert np.diff(smooth).max() < 2 * np.diff(smooth).min() * (p[-1] / p[0])
    np.testing.assert_allclose(np.exp(smooth), sharp)


@pytest.mark.requirement("R-443")
def test_a_sigmoid_is_found_again() -> None:
    truth = Sigmoid(chance=0.25, best=0.9, middle=2.6, width=0.15)
    losses = np.linspace(1.8, 3.6, 40)
    noise = np.random.default_rng(0).normal(0, 0.002, 40)
    found = fit_sigmoid(losses, truth(losses) + noise)
    for name in ("chance", "best", "middle", "width"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=0.05)


def test_a_sigmoid_needs_five_points() -> None:
    with pytest.raises(DataError, match="at least 5"):
        fit_sigmoid([1, 2], [0.1, 0.2])
