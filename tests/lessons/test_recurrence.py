"""Gradients through time of random networks: what vanishes, what explodes, what clipping does."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.inspect import spectrum
from chainrule.lessons.recurrence import clipped, random_rnn, ratios


@pytest.mark.requirement("R-239")
def test_gradients_of_random_networks_vanish_unless_they_explode() -> None:
    level, large = ratios(1.0), ratios(3.0)
    assert level.shape == large.shape == (9, 51) and (level[:, -1] == 1).all()
    assert np.median(level[:, 0]) < 1e-4
    assert np.median(large[:, 0]) > 100
    assert 0.7 < spectrum(random_rnn(1.0).weight_h.array).radius < 1.3


@pytest.mark.requirement("R-240")
def test_clipping_ends_explosion_and_leaves_vanishing_as_it_is() -> None:
    before, after = clipped(3.0, limit=2.0)
    assert before > 100 and after == pytest.approx(2.0)
    before, after = clipped(1.0, limit=2.0)
    assert before == pytest.approx(after, rel=1e-12) and after < 1e-3
