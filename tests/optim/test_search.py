"""The learning-rate sweep and its reading, on a bigram net; early stopping."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, DataError
from chainrule.optim import SGD, EarlyStopping, Sweep, choose, sweep

TEXT = "the rain in spain stays mainly in the plain and the train in the lane came late again "
SYMBOLS = sorted(set(TEXT))
IDS = np.array([SYMBOLS.index(c) for c in 8 * TEXT])


class Bigrams:
    """Logits of the next symbol are a row of a table; the loss is the sum over the text (seed 002 §6)."""

    def __init__(self) -> None:
        cr.seed(5)
        self.table = cr.nn.Embedding(len(SYMBOLS), len(SYMBOLS))
        self.optimizer = SGD(self.table.parameters(), 0.0)

    def loss(self) -> cr.Tensor:
        return cr.ops.cross_entropy(self.table(IDS[:-1]), targets=IDS[1:], reduction="sum")

    def step(self, rate: float) -> float:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step(rate)
        return self.mean_loss()

    def mean_loss(self) -> float:
        with cr.no_grad():
            return self.loss().item() / (len(IDS) - 1)


@pytest.mark.requirement("R-127")
def test_a_sweep_pairs_exponentially_spaced_rates_with_losses() -> None:
    net = Bigrams()
    start = net.mean_loss()
    seen = sweep(net.step, start)
    assert len(seen.rates) == len(seen.losses) >= 50
    np.testing.assert_allclose(seen.rates[1:] / seen.rates[:-1], seen.rates[1] / seen.rates[0])
    assert (seen.rates[0], seen.rates[-1]) == pytest.approx((1e-3, 1.0))
    assert seen.losses[0] == pytest.approx(start, rel=0.01)
    assert seen.losses.min() < 0.6 * start


@pytest.mark.requirement("R-128")
@pytest.mark.parametrize("percentile", [5.0, 10.0])
def test_the_chosen_range_is_flat_and_below_the_start(percentile: float) -> None:
    net = Bigrams()
    start = net.mean_loss()
    seen = sweep(net.step, start)
    choice = choose(seen, percentile=percentile)
    inside = (seen.rates >= choice.low) & (seen.rates <= choice.high)
    assert inside.any()
    assert (choice.smoothed[np.isin(seen.rates, [choice.low, choice.high])] < start).all()
    assert choice.smoothed.min() == choice.smoothed[seen.rates == choice.best]


@pytest.mark.requirement("R-128")
def test_the_flat_left_end_is_not_chosen() -> None:
    """A curve that is flat, falls, has its plateau from 0.1 to 0.3, and blows up (E-002-36)."""
    rates = np.geomspace(1e-3, 1, 100)
    losses = 3.0 - 2 / (1 + (0.03 / rates) ** 4) + np.where(rates > 0.3, 40 * (rates - 0.3), 0)
    losses[rates < 5e-3] = 3.0
    choice = choose(Sweep(rates, losses, 3.0))
    assert 0.08 < choice.low <= choice.best <= 0.31
    assert choice.high <= 0.31


@pytest.mark.requirement("R-128")
def test_a_sharp_minimum_is_chosen_when_nothing_below_the_start_is_flat() -> None:
    rates = np.geomspace(1e-3, 1, 100)
    losses = np.where(rates < 0.05, 3.0, 3.0 - 10 * np.minimum(rates - 0.05, np.maximum(0.25 - rates, -5)))
    choice = choose(Sweep(rates, losses, 3.0), window=1)
    assert choice.low == choice.high == choice.best == rates[np.argmin(losses)]


@pytest.mark.requirement("R-133")
def test_too_small_is_slow_and_too_large_bounces() -> None:
    net = Bigrams()
    good = choose(sweep(net.step, net.mean_loss())).low

    def final(rate: float) -> float:
        net = Bigrams()
        return [net.step(rate) for _ in range(50)][-1]

    assert final(good) < 0.9 * final(good / 100)
    assert final(good) < 0.9 * final(1.0)


def test_divergence_ends_the_sweep() -> None:
    losses = iter([3.0, 2.5, 2.0, 1.8, 1.9, math.nan])
    seen = sweep(lambda rate: next(losses), 3.1, count=50)
    assert seen.losses.tolist() == [3.0, 2.5, 2.0, 1.8, 1.9]
    assert len(seen.rates) == 5


def test_a_sweep_that_never_gets_below_its_start_is_refused() -> None:
    seen = sweep(lambda rate: 3.0 + rate, 3.0)
    with pytest.raises(
        DataError, match=r"choose: no rate from 0\.001 to 1 brought the loss below its start 3"
    ):
        choose(seen)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"low": 0.0}, "rates from 0.0 to 1.0"), ({"low": 2.0}, "rates from 2.0"), ({"count": 1}, "1 rates")],
)
def test_bad_sweeps_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sweep(lambda rate: 1.0, 1.0, **settings)


def test_bad_choices_are_refused() -> None:
    with pytest.raises(ConfigError, match="percentile is 0"):
        choose(sweep(lambda rate: 1.0, 2.0), percentile=0)
    with pytest.raises(DataError, match="3 finite losses, a window of 5"):
        choose(Sweep(np.arange(1.0, 4.0), np.ones(3), 2.0))
    with pytest.raises(DataError, match="1 finite losses, a window of 1"):
        choose(Sweep(np.ones(1), np.ones(1), 2.0), window=1)
    two = choose(Sweep(np.array([1.0, 2.0]), np.array([1.5, 1.0]), 2.0), window=1, percentile=100)
    assert two.best == 2.0


@pytest.mark.requirement("R-137")
@pytest.mark.parametrize("patience", [1, 3])
def test_early_stopping_stops_at_the_minimum_plus_patience(patience: int) -> None:
    losses = [(step - 10) ** 2 / 100 + 1 for step in range(30)]  # minimum at step 10
    stop = EarlyStopping(patience)
    stopped = next(step for step, loss in enumerate(losses) if stop(step, loss))
    assert stopped == 10 + patience
    assert (stop.best_step, stop.best) == (10, 1.0)


def test_early_stopping_ignores_small_gains_and_nan() -> None:
    stop = EarlyStopping(2, min_delta=0.1)
    assert [stop(i, loss) for i, loss in enumerate([1.0, 0.95, 0.85, math.nan, 0.84])] == [
        False,
        False,
        False,
        False,
        True,
    ]
    assert stop.best_step == 2


def test_early_stopping_stops_where_no_loss_was_ever_a_number() -> None:
    stop = EarlyStopping(2)
    assert [stop(step, math.nan) for step in range(2)] == [False, True]
    assert stop.best_step == -1


@pytest.mark.parametrize(("patience", "delta"), [(0, 0.0), (1, -0.1)])
def test_bad_early_stopping_is_refused(patience: int, delta: float) -> None:
    with pytest.raises(ConfigError, match="EarlyStopping"):
        EarlyStopping(patience, min_delta=delta)
