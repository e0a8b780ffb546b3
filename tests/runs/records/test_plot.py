"""The smoothed curve tells no story of its own."""

from __future__ import annotations

import numpy as np

from chainrule.runs.records.plot import smooth


def test_a_straight_line_stays_and_the_ends_are_true() -> None:
    line = np.linspace(5.0, 1.0, 200)
    np.testing.assert_allclose(smooth(line), line, rtol=1e-12)
    bent = np.exp(-np.arange(300) / 20)
    assert smooth(bent)[0] == bent[0] and np.isclose(smooth(bent)[-1], bent[-1])


def test_noise_is_averaged() -> None:
    noisy = np.random.default_rng(0).normal(size=1000)
    assert smooth(noisy)[100:-100].std() < 0.25
    assert smooth(np.array([3.0])).tolist() == [3.0]
