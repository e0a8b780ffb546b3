"""One angle as sine alone, and as sine and cosine; positions as raw numbers."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.lessons.positions import confused, degrees, relative_steps
from chainrule.nn import sinusoidal
from tests.vectors import vector


@pytest.mark.requirement("R-313")
def test_sine_alone_is_ambiguous_and_the_pair_is_not() -> None:
    v = vector("004-11.3.3-ambiguity")
    sine, pair = degrees()
    v.check({"sin30": sine[30, 0], "sin150": sine[150, 0], "cos30": pair[30, 1]})
    same = confused(sine)
    assert (30, 150) in same and {(t, 180 - t) for t in range(90)} <= set(same)
    assert all(np.isclose(sine[i], sine[j]) for i, j in same)
    assert confused(pair) == []
    assert pair[150, 1] == pytest.approx(-pair[30, 1])
    assert confused(degrees(361).pair) == [(0, 360)]  # a full turn: other pairs turn at other speeds


@pytest.mark.requirement("R-310")
def test_raw_indices_grow_and_shrink_at_once() -> None:
    v = vector("004-11.1-relative-step")
    raw = np.arange(1.0, 103)[:, None]  # a position is its number
    v.check([100 * relative_steps(raw[[a - 1, b - 1]])[0] for a, b in v.inputs["pairs"]])
    steps = relative_steps(sinusoidal(102, 64))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-12)  # ours: the same step everywhere
    assert steps[0] > 10 * relative_steps(raw)[-1]

    def known(table: np.ndarray) -> float:
        """The share of the numbers of positions 51 to 101 that lie between those of the first 51."""
        first, later = table[:51], table[51:]
        return float(((later >= first.min(axis=0)) & (later <= first.max(axis=0))).mean())

    assert known(raw) == 0 and known(sinusoidal(102, 64)) > 0.3  # all of the pairs that have turned once
    assert np.abs(raw).max() > 100 and np.abs(sinusoidal(102, 64)).max() <= 1
