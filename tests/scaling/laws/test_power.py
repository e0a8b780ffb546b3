"""Power laws: the constants of papers, steps, inverses, tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.scaling.laws.power import PowerLaw, table
from chainrule.scaling.laws.published import KAPLAN_C, KAPLAN_D, KAPLAN_N, PF_DAY
from tests.vectors import vector


@pytest.mark.requirement("R-424")
@pytest.mark.parametrize("id", ["004-14.1.2-loss-at-Nc", "004-14.1.3-loss-at-Dc"])
def test_at_its_scale_a_law_gives_one_nat(id: str) -> None:
    v = vector(id)
    law = PowerLaw(v.inputs["Nc"], v.inputs["alpha"])
    v.check(law(v.inputs["N"]).item())
    assert law in (KAPLAN_N, KAPLAN_D)


@pytest.mark.requirement("R-424")
def test_the_unit_of_compute_is_petaflop_days() -> None:
    v = vector("004-14.1.4-Cc-units")
    v.check(KAPLAN_C(v.inputs["C_flops"]).item())
    assert KAPLAN_C.scale / PF_DAY == pytest.approx(v.inputs["Cc"])


@pytest.mark.requirement("R-424")
@pytest.mark.parametrize(
    ("id", "law"),
    [
        ("004-14.1.2-doubling-N", KAPLAN_N),
        ("004-14.1.3-doubling-D", KAPLAN_D),
        ("004-14.1.4-tenfold-C", KAPLAN_C),
    ],
)
def test_what_a_factor_saves(id: str, law: PowerLaw) -> None:
    v = vector(id)
    saved = law.reduction(v.inputs["factor"])
    assert law.exponent == v.inputs["alpha"]
    v.check({"factor": 1 / (1 - saved), "percent": 100 * saved})


@pytest.mark.requirement("R-424")
def test_orders_of_magnitude() -> None:
    v = vector("004-14.1.1-orders")
    v.check(math.log10(v.inputs["hi"] / v.inputs["lo"]))


@pytest.mark.requirement("R-428")
def test_slopes_and_halving() -> None:
    v = vector("004-14.9.1-slopes")
    saved = [PowerLaw(1.0, alpha).reduction(2) for alpha in v.inputs["alphas"]]
    v.check({"factor": [1 - each for each in saved], "percent": [100 * each for each in saved]})
    v = vector("004-14.6.3-halving")
    v.check(PowerLaw(1.0, v.inputs["alpha"]).factor_for(v.inputs["ratio"]))


@pytest.mark.requirement("R-428")
@given(st.floats(1e3, 1e15), st.floats(0.01, 1.0), st.floats(0.0, 2.0), st.floats(0.01, 10.0))
def test_needed_is_the_inverse_of_the_law(scale: float, exponent: float, floor: float, above: float) -> None:
    law = PowerLaw(scale, exponent, floor)
    assert law(law.needed(floor + above)).item() == pytest.approx(floor + above, rel=1e-9)


@pytest.mark.requirement("R-428")
def test_the_slope_on_logarithmic_axes_is_the_exponent() -> None:
    x = np.logspace(3, 9, 7)
    slopes = np.diff(np.log(KAPLAN_N(x))) / np.diff(np.log(x))
    np.testing.assert_allclose(slopes, -KAPLAN_N.exponent, rtol=1e-12)


@pytest.mark.requirement("R-427")
def test_the_floor_and_its_perplexity() -> None:
    v = vector("004-14.4.1-irreducible-ppl")
    law = PowerLaw(8.8e13, 0.076, floor=v.inputs["x"])
    assert law(math.inf).item() == v.inputs["x"]
    v.check(math.exp(law(math.inf).item()))
    reducible = law(1e9) - law.floor
    assert reducible == pytest.approx(PowerLaw(8.8e13, 0.076)(1e9))


def test_a_loss_below_the_floor_is_never_reached() -> None:
    with pytest.raises(ConfigError, match=r"loss 1\.5 is not above the floor 1\.5"):
        PowerLaw(1.0, 0.1, 1.5).needed(1.5)


@pytest.mark.requirement("R-449")
def test_a_table_has_constant_shares_and_shrinking_drops() -> None:
    v = vector("004-14.4.2-table")
    rows = table(PowerLaw.of_prefactor(v.inputs["a"], v.inputs["alpha"]), v.inputs["N"])
    v.check([row["loss"] for row in rows])
    percent = vector("004-14.4.2-percent").recomputed["percent"]
    assert [100 * row["share"] for row in rows[1:]] == pytest.approx([percent] * 4)
    drops = [row["drop"] for row in rows[1:]]
    assert drops == sorted(drops, reverse=True)
    printed = table(PowerLaw.of_prefactor(10**1.3, 0.1), v.inputs["N"])  # what the table of the document is
    rounded = [round(row["loss"], 2) for row in printed]
    pairs = [[rounded[0], rounded[1]], [rounded[3], rounded[4]]]
    assert pairs == vector("004-14.4.2-drops").inputs["pairs"]
    vector("004-14.4.2-drops").check([a - b for a, b in pairs])


@pytest.mark.requirement("R-441")
@pytest.mark.parametrize("alpha", ["0.07", "0.08", "0.09"])
def test_the_loss_at_a_size_for_three_exponents(alpha: str) -> None:
    v = vector(f"004-14.9.6-L-{alpha}")
    v.check(PowerLaw(v.inputs["Nc"], v.inputs["alpha"])(v.inputs["N"]).item())


@pytest.mark.requirement("R-441")
def test_an_error_of_the_exponent_and_what_it_makes_of_the_loss() -> None:
    v = vector("004-14.9.6-relative-alpha")
    v.check(100 * v.inputs["a"] / v.inputs["b"])
    v = vector("004-14.9.6-spread")
    low, high = (PowerLaw(1.0, v.inputs["alpha"] + sign * v.inputs["dalpha"]) for sign in (0, 1))
    x = 10.0 ** v.inputs["decades"]
    v.check(100 * (low(x) / high(x) - 1).item())


def test_a_law_needs_positive_numbers() -> None:
    with pytest.raises(ConfigError, match=r"power law: exponent is -1"):
        PowerLaw(1.0, -1.0)
