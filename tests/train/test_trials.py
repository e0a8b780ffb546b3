"""Trials on a copy: overfit one batch, and the learning rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Tensor
from chainrule.data import PairBatches
from chainrule.doctor import Code
from chainrule.models import GPT, LSTMLM
from chainrule.optim.search import Sweep
from chainrule.random import generator
from chainrule.train import Trainer
from chainrule.train.trials import OneBatch, _before_it_bursts, find_rate, left_open, overfit
from tests.train.test_trainer import model_of, trainer_of


def untouched(trainer: Trainer, act: Any) -> Any:
    before = trainer.model.parameters().data.copy()
    result = act(trainer)
    assert (trainer.model.parameters().data == before).all() and trainer.steps == 0
    return result


@pytest.mark.parametrize("family", ["gpt", "llama", "gru"])
def test_a_healthy_model_overfits_one_batch(family: str) -> None:
    finding = untouched(trainer_of(model_of(family), lr=1e-2), overfit)
    assert (finding.level, finding.code) == ("ok", Code.ONE_BATCH_OK), finding


def test_dropout_does_not_stand_in_the_way() -> None:
    assert overfit(trainer_of(model_of(dropout=0.5))).level == "ok"


def test_pairs_are_learned_too() -> None:
    cr.seed(0)
    model = cr.models.make("seq2seq", n_layer=1, n_head=2, n_embd=32, block_size=8, vocab_size=12)
    batches = PairBatches([[4, 5, 6], [7, 8]], [[9, 10], [11, 4]], start=1, end=2, batch_size=2, block_size=8)
    assert overfit(Trainer(model, batches, [], replace(trainer_of().config, lr=3e-3))).level == "ok"


class Shuffled(GPT):
    """Its targets are others each time: there is nothing to overfit."""

    calls = 0

    def loss(self, inputs: Any, targets: Any) -> Tensor:
        self.calls += 1
        rng = generator("shuffled", self.calls, seed=0)
        return super().loss(inputs, rng.permutation(np.asarray(targets).reshape(-1)).reshape(targets.shape))


class Deaf(GPT):
    """Does not hear what it reads."""

    def hidden(self, ids: Any) -> Tensor:
        return super().hidden(np.zeros_like(ids))


@pytest.mark.parametrize("broken", [Shuffled, Deaf])
def test_a_broken_model_does_not(broken: type[GPT]) -> None:
    finding = overfit(trainer_of(broken(model_of().config)), steps=100)
    assert finding.level == "problem" and "in 100 steps" in finding.measured
    assert "targets belong to their inputs" in finding.advice


def test_contexts_that_leave_something_open() -> None:
    inputs = np.array([[1, 2], [1, 3]])
    targets = np.array([[2, 5], [3, 6]])  # after 1 comes 2 or 3; the rest is certain
    assert left_open(inputs, targets, context=None) == pytest.approx(np.log(2) / 2)
    assert left_open(inputs, np.array([[2, 5], [2, 6]]), context=None) == 0
    assert left_open(np.array([[1, 2, 2]]), np.array([[2, 2, 3]]), context=1) == pytest.approx(
        2 * np.log(2) / 3
    )
    assert left_open(np.array([[1, 2, 2]]), np.array([[2, 2, 3]]), context=2) == 0


def test_one_batch_is_always_the_same() -> None:
    batch = OneBatch(np.arange(40).reshape(10, 4), np.arange(40).reshape(10, 4))
    assert batch.batch(0)[0].shape == (4, 4) and batch.tokens == 16 and batch.batch(3)[1] is batch.batch(9)[1]


def test_the_finder_names_a_rate_below_the_best() -> None:
    trainer = trainer_of(model_of(n_embd=32))
    seen, choice, advised = untouched(trainer, find_rate)
    assert seen.rates[0] == pytest.approx(1e-5) and len(seen.rates) == len(seen.losses)
    assert choice.low <= choice.high and 1e-5 < choice.best <= 1
    assert advised == pytest.approx(choice.best / 10, rel=0.2)
    again = find_rate(trainer)
    assert (again.seen.losses == seen.losses).all() and again.advised == advised


def test_the_finder_carries_the_state_of_a_recurrent_model() -> None:
    trainer = trainer_of(model_of("gru"))
    assert not isinstance(trainer.model, LSTMLM)
    assert 1e-5 < find_rate(trainer, count=40).advised < 1


def test_the_steps_of_a_trial_are_counted_from_one() -> None:
    said: list[str] = []
    finding = overfit(trainer_of(lr=1e-6), steps=3, said=said.append)
    assert [line.split(",")[0] for line in said] == ["step 1 of 3", "step 2 of 3", "step 3 of 3"]
    assert finding.code is Code.ONE_BATCH_FAILS and "in 3 steps" in finding.measured


def test_rates_beyond_a_rise_of_a_tenth_are_left_out() -> None:
    """From 9 down to 1, up to just below 1 + (9 - 1)/10, then above: what follows is not looked at."""
    flat = [9.0] * 10 + [1.0] * 10 + [1.7] * 10
    rates = np.geomspace(1e-5, 1.0, 50)
    seen = Sweep(rates, np.array([*flat, *[1.9] * 20]), start=9.0)
    assert 28 <= len(_before_it_bursts(seen).rates) <= 32
    low = Sweep(rates[:30], np.array(flat), start=9.0)
    assert len(_before_it_bursts(low).rates) == 30
