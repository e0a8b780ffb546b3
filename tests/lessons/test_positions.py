"""One angle as sine alone, and as sine and cosine."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.lessons.positions import confused, degrees
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
