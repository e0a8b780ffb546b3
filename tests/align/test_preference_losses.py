"""Losses of a margin, by the worked example, by their formulas and by what they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.align import preference_loss
from chainrule.align.preference_losses import LOSSES
from chainrule.errors import ConfigError
from tests.vectors import vector

MARGINS = np.array([-3.0, -0.4, 0.0, 0.7, 2.5])


def losses(name: str, margins: Any = MARGINS, **settings: Any) -> Any:
    return preference_loss(name, **settings)(cr.Tensor(np.asarray(margins, np.float64))).numpy()


@pytest.mark.requirement("R-421")
def test_the_worked_example() -> None:
    v = vector("der-dpo")
    margins = [chosen - rejected for chosen, rejected in v.inputs["cases"]]
    v.check(losses("sigmoid", margins, beta=v.inputs["beta"]))


@pytest.mark.parametrize("beta", [0.1, 1.5])
def test_formulas(beta: float) -> None:
    sigmoid = -np.log(1 / (1 + np.exp(-beta * MARGINS)))
    np.testing.assert_allclose(losses("sigmoid", beta=beta), sigmoid, rtol=1e-12)
    np.testing.assert_allclose(losses("ipo", beta=beta), (MARGINS - 0.5 / beta) ** 2, rtol=1e-12)
    np.testing.assert_allclose(losses("hinge", beta=beta), np.maximum(0, 1 - beta * MARGINS), rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
def test_robust_is_right_on_average_although_labels_are_not(noise: float) -> None:
    """With probability `noise` a pair is the wrong way round; the mean of the loss is that of right labels."""
    seen = losses("robust", noise=noise) * (1 - noise) + losses("robust", -MARGINS, noise=noise) * noise
    np.testing.assert_allclose(seen, losses("sigmoid"), rtol=1e-12)


@pytest.mark.requirement("R-421")
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str) -> None:
    loss = preference_loss(name, beta=0.6)
    assert cr.gradcheck(lambda margin: loss(margin).sum(), MARGINS + 0.013) < 1e-6


def test_a_large_margin_costs_nothing_and_overflows_nowhere() -> None:
    extreme = np.array([-1e5, 1e5])
    for name in ("sigmoid", "hinge"):
        found = losses(name, extreme, beta=1.0)
        assert found[1] == 0 and math.isfinite(found[0]) and found[0] > 9e4


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("sigmoid", {"beta": 0.0}, "beta is 0.0"),
        ("ipo", {"beta": math.inf}, "beta is inf"),
        ("robust", {"noise": 0.5}, "noise is 0.5"),
        ("sigmoyd", {}, "did you mean sigmoid"),
    ],
)
def test_wrong_settings_are_named(name: str, settings: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        preference_loss(name, **settings)
