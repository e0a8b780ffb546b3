"""Verdicts on losses: the first one, curves, hand-made logits."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import load
from chainrule.errors import ConfigError, DataError
from chainrule.inspect import curve, expected_loss, hand_made_logits, initial_loss
from chainrule.lessons.laboratory import BAD, LetterConfig, LetterModel, examples, train
from tests.vectors import vector


@pytest.mark.requirement("R-216")
def test_the_expected_first_loss_and_its_verdict() -> None:
    v = vector("002-initial-loss-27")
    v.check(expected_loss(**v.inputs))
    good, high, low = (initial_loss(loss, 27) for loss in (3.31, 25.7, 2.4))
    assert (good.level, high.level, low.level) == ("ok", "problem", "problem")
    assert good.advice == "" and "last layer" in high.advice and "shifted by one" in low.advice
    assert initial_loss(math.inf, 27).level == "problem"
    with pytest.raises(ConfigError, match="vocab_size is 0"):
        expected_loss(0)


def test_the_spread_of_the_logits_explains_the_excess() -> None:
    """Logits N(0, s²) cost about s²/2 above ln V."""
    logits = 2 * np.random.default_rng(0).normal(size=(20_000, 50))
    loss = float(cr.ops.cross_entropy(logits, targets=np.zeros(20_000, int)))
    said = re.search(r"spread of (\S+)", initial_loss(loss, 50).meaning)
    assert said and float(said[1]) == pytest.approx(2.0, abs=0.15)


@pytest.fixture(scope="module")
def curves() -> tuple[np.ndarray, np.ndarray, int]:
    words = sorted(set(re.findall(r"\b[a-z]{3,}\b", load("pydoc").text)))
    contexts, targets, V = examples(words[::4])
    found = []
    for options in (BAD, {}):
        cr.seed(0)
        found.append(train(LetterModel(LetterConfig(V, **options)), contexts, targets, steps=1000))
    return found[0], found[1], V


@pytest.mark.requirement("R-217")
def test_bad_initialisation_is_a_hockey_stick_and_good_is_not(
    curves: tuple[np.ndarray, np.ndarray, int],
) -> None:
    bad, good, V = curves
    assert bad[0] - bad[-50:].mean() > 2
    assert abs(good[0] - math.log(V)) < 0.05 * math.log(V)
    stick, falling = curve(bad, V), curve(good, V)
    assert (stick.shape, falling.shape) == ("hockey stick", "falling")
    assert stick.squashing > 100 and falling.squashing < 10
    assert good[-50:].mean() < bad[-50:].mean()


@pytest.mark.parametrize(
    ("losses", "shape"),
    [
        (np.full(100, 3.3), "flat"),
        (np.r_[np.linspace(3.3, 1.5, 100), np.linspace(1.5, 3.2, 100)], "diverging"),
        ([3.3, 3.0, math.nan, 2.0], "not finite"),
        ([3.3], "flat"),
        (np.linspace(3.3, 0.981 * 3.3, 19), "flat"),
        (np.linspace(math.log(27) + 2.01, 2.0, 19), "hockey stick"),
        (np.r_[np.linspace(3.3, 1.5, 10), 2.01 * np.ones(9)], "diverging"),
    ],
)
def test_other_shapes(losses: np.ndarray, shape: str) -> None:
    found = curve(losses, 27)
    assert found.shape == shape and found.finding.level == "problem" and found.finding.advice


@pytest.mark.parametrize(
    "losses",
    [
        np.linspace(3.3, 0.979 * 3.3, 19),  # 2.1% of the first loss
        np.linspace(math.log(27) + 1.99, 2.0, 19),
        np.r_[np.linspace(3.3, 1.5, 10), 1.99 * np.ones(9)],  # half a nat of noise
    ],
)
def test_curves_just_within_the_limits(losses: np.ndarray) -> None:
    found = curve(losses, 27)
    assert found.shape == "falling" and found.finding.level == "ok"


def test_squashing_ends_at_ln_v() -> None:
    """Of 39 steps single ones are looked at."""
    losses = np.r_[6.0, 5.0, 4.0, math.log(27), np.full(35, 3.0)]
    assert curve(losses, 27).squashing == 3
    assert curve(losses + 3, 27).squashing == len(losses)


@pytest.mark.parametrize(
    ("share", "level"), [(1.049, "ok"), (1.051, "problem"), (0.851, "ok"), (0.849, "problem")]
)
def test_limits_of_the_first_loss(share: float, level: str) -> None:
    assert initial_loss(share * math.log(27), 27).level == level


def test_a_curve_needs_steps() -> None:
    with pytest.raises(DataError, match="at least one step"):
        curve([], 27)


@pytest.mark.requirement("R-218")
def test_hand_made_logits() -> None:
    names = ["zeros", "uniform01", "right-label", "wrong-label", "normal1", "normal10", "normal100"]
    rows = hand_made_logits()
    assert len(rows) == len(names)
    for row, name in zip(rows, names, strict=True):
        v = vector(f"002-table1-{name}")
        if name == "normal1":  # the document gives only probabilities
            v.check({"loss": row.loss, "logits_recovered": row.logits}, rtol=1e-9)
            assert row.p == pytest.approx(v.inputs["p"], abs=1e-9)
        else:
            assert list(row.logits) == v.inputs["logits"]
            v.check({"loss": row.loss, "p": row.p}, rtol=1e-9)
