"""Methods compared by their curves; money."""

from __future__ import annotations

import pytest

from chainrule.scaling.laws.comparison import HOURS_PER_MONTH, compare, compound, effective_compute, money
from chainrule.scaling.laws.power import PowerLaw
from tests.vectors import vector


@pytest.mark.requirement("R-437")
def test_effective_compute() -> None:
    v = vector("der-effective-compute")
    factor = effective_compute(v.inputs["L_A"], v.inputs["L_B"], v.inputs["alpha_C"])
    v.check(factor)
    law = PowerLaw(1e20, v.inputs["alpha_C"])  # with so much more compute A reaches what B does
    C = law.needed(v.inputs["L_A"])
    assert law(factor * C).item() == pytest.approx(v.inputs["L_B"])


@pytest.mark.requirement("R-438")
def test_the_better_exponent_wins_in_the_end() -> None:
    a, b = PowerLaw.of_prefactor(10, 0.05), PowerLaw.of_prefactor(30, 0.08)
    found = compare(a, b)
    assert found.better_exponent == "b"
    assert found.crossing is not None
    assert found.winner(a, b, found.crossing / 10) == "a"
    assert found.winner(a, b, found.crossing * 10) == "b"
    assert compare(a, PowerLaw.of_prefactor(5, 0.05)) == ("equal", None)


@pytest.mark.requirement("R-439")
def test_gains_compound() -> None:
    v = vector("004-14.8.2-compound")
    v.check(100 * compound(v.inputs["a"], v.inputs["b"]))
    v = vector("004-14.8.2-distill")  # cost of use is proportional to the parameters
    v.check(v.inputs["a"] / v.inputs["b"])


@pytest.mark.requirement("R-444")
def test_money() -> None:
    v = vector("004-14.6.2-cost")
    dollars = money(v.inputs["gpus"], v.inputs["months"] * HOURS_PER_MONTH, v.inputs["usd_per_hour"])
    v.check({"usd": dollars, "exceeds_100M": dollars > 100e6})
    v = vector("004-14.6.2-production-share")
    v.check(100 * v.inputs["a"] / v.inputs["b"])
