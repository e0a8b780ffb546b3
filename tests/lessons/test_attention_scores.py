"""Scores of attention: their variance, and how their number grows."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.lessons.attention_scores import growth, random_scores, score_variance
from tests.vectors import vector


@pytest.mark.requirement("R-226")
def test_scores_have_variance_d_and_scaled_ones_1() -> None:
    v = vector("der-score-variance-numbers")
    v.check(cr.ops.softmax(np.array(v.inputs["logits"], dtype=float)))
    found = score_variance(64, draws=10_000)
    assert found.plain == pytest.approx(64, rel=0.05) and found.scaled == pytest.approx(1, rel=0.05)
    assert found.plain_peak > 0.8 and found.scaled_peak < 0.5
    with pytest.raises(ConfigError, match="d 0"):
        score_variance(0)


@pytest.mark.requirement("R-283")
def test_without_scaling_no_gradient_gets_through() -> None:
    found = score_variance(512, draws=200, keys=16)
    assert found.scaled_slope > 5 * found.plain_slope
    p = cr.ops.softmax(random_scores(4, 1, 16))[0]
    want = np.abs(cr.ops.softmax_jacobian(p)).sum()
    assert score_variance(4, draws=1, keys=16).plain_slope == pytest.approx(want)


@pytest.mark.requirement("R-456")
def test_the_time_of_attention_grows_with_the_square_of_the_length() -> None:
    ratios = []
    for _ in range(5):  # what else the machine does can only spoil a try
        found = growth((256, 512, 1024, 2048), patience=0.1)
        assert [timing.scores for timing in found] == [timing.n**2 for timing in found]
        ratios.append(found[-1].seconds / found[-2].seconds)
        if 3 < ratios[-1] < 5.5:
            break
    assert 3 < ratios[-1] < 5.5, ratios
