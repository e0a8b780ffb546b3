"""Laws in parameters and tokens: limits, closed minima."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule.scaling.laws import Additive, Unified, optimal
from chainrule.scaling.laws.joint import FLOPS, JointLaw
from chainrule.scaling.laws.published import CHINCHILLA, KAPLAN, KAPLAN_D, KAPLAN_N
from tests.vectors import vector


@pytest.mark.requirement("R-425")
def test_the_unified_law_and_its_limits() -> None:
    v = vector("der-unified-law")
    law = Unified(v.inputs["Nc"], v.inputs["Dc"], v.inputs["alpha_N"], v.inputs["alpha_D"])
    v.check([law(N, D).item() for N, D in v.inputs["points"]])
    assert law(1e9, math.inf) == pytest.approx(KAPLAN_N(1e9))
    assert law(math.inf, 2e10) == pytest.approx(KAPLAN_D(2e10))
    ratio = vector("004-14.9.2-exponent-ratio")
    ratio.check(law.alpha_N / law.alpha_D)


@pytest.mark.requirement("R-426")
def test_without_limits_the_additive_law_gives_its_floor() -> None:
    assert CHINCHILLA(math.inf, math.inf) == CHINCHILLA.E
    assert CHINCHILLA(1e9, math.inf) == pytest.approx(CHINCHILLA.E + CHINCHILLA.A / 1e9**CHINCHILLA.alpha)
    assert (CHINCHILLA(1e9, 1e10) > CHINCHILLA(1e10, 1e10)).all()


@pytest.mark.requirement("R-432")
def test_the_best_size_in_closed_form() -> None:
    v = vector("der-optimal-N-unified")
    law = Unified(v.inputs["Nc"], v.inputs["Dc"], v.inputs["alpha_N"], v.inputs["alpha_D"])
    found = optimal(law, v.inputs["C"])
    v.check({"N": found.params, "D": found.tokens, "a": law.a})
    vector("004-14.9.4-exponent-a").check(KAPLAN.a)


@pytest.mark.requirement("R-432")
@pytest.mark.parametrize("law", [KAPLAN, CHINCHILLA, Additive(1.8, 482.0, 2085.0, 0.35, 0.37)])
@pytest.mark.parametrize("C", [1e18, 1e21, 1e24])
def test_no_other_size_is_better(law: JointLaw, C: float) -> None:
    N = np.logspace(5, 14, 20_001)
    losses = law(N, C / (FLOPS * N))
    assert optimal(law, C).params == pytest.approx(N[losses.argmin()], rel=1e-3)
    assert law(*optimal(law, C)) <= losses.min() + 1e-12


@pytest.mark.requirement("R-432")
def test_the_frontier_is_the_loss_of_the_best_sizes() -> None:
    C = np.logspace(17, 24, 8)
    best = [CHINCHILLA(*optimal(CHINCHILLA, c)).item() for c in C]
    np.testing.assert_allclose(CHINCHILLA.frontier()(C), best, rtol=1e-9)
