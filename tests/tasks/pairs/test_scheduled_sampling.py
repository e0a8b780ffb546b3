"""Scheduled sampling: the share of guesses grows as promised, and all else stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import PairBatches, PairCorpus
from chainrule.errors import ConfigError
from chainrule.models import IGNORE, Seq2Seq, Seq2SeqConfig, make
from chainrule.runs import Run
from chainrule.tasks import ScheduledSampling
from chainrule.tasks.pairs.translation import TranslationTask
from chainrule.train import TrainConfig, Trainer

RNG = np.random.default_rng(3)
TARGETS = [RNG.integers(3, 20, size=RNG.integers(0, 12)) for _ in range(400)]
PAIRS = PairBatches(TARGETS, TARGETS, start=1, end=2, batch_size=100, block_size=16)


@pytest.fixture
def model() -> Seq2Seq:
    """It guesses token 20 always, which no target has."""
    cr.seed(0)
    model = Seq2Seq(Seq2SeqConfig(n_layer=1, n_head=2, n_embd=8, block_size=16, vocab_size=21))
    model.final_logits_bias.data[0, 20] = 1e3
    return model


@pytest.mark.requirement("R-372")
def test_the_share_of_guesses_follows_the_schedule(model: Seq2Seq) -> None:
    batches = ScheduledSampling(PAIRS, model, fraction=0.5, steps=40, seed=1)
    for first in (0, 10, 20, 30, 40, 60):
        own = total = 0
        for step in range(first, first + 4):
            (_, _, inputs), targets = batches.batch(step)
            counted = targets[:, 1:] != IGNORE
            own += int((inputs[:, 1:] == 20)[counted].sum())
            total += int(counted.sum())
        share = float(np.mean([batches.fraction_at(step) for step in range(first, first + 4)]))
        assert abs(own / total - share) <= 3 * (share * (1 - share) / total) ** 0.5 + 1e-12
    assert batches.fraction_at(0) == 0 and batches.fraction_at(40) == batches.fraction_at(1000) == 0.5


@pytest.mark.requirement("R-372")
def test_a_share_of_zero_is_teacher_forcing(model: Seq2Seq) -> None:
    batches = ScheduledSampling(PAIRS, model, fraction=0.0, steps=1)
    for step in (0, 5):
        (source, mask, inputs), targets = batches.batch(step)
        (source_, mask_, inputs_), targets_ = PAIRS.batch(step)
        for got, want in ((source, source_), (mask, mask_), (inputs, inputs_), (targets, targets_)):
            np.testing.assert_array_equal(got, want)
    assert batches.tokens == PAIRS.tokens


def test_only_tokens_after_the_start_and_before_the_padding_are_guessed(model: Seq2Seq) -> None:
    """With a share of 1 every such token is the likeliest after the true ones before it."""
    model.final_logits_bias.data[...] = 0
    (source, mask, inputs), targets = ScheduledSampling(PAIRS, model, fraction=1.0, steps=1).batch(7)
    (_, _, true), true_targets = PAIRS.batch(7)
    counted = true_targets[:, 1:] != IGNORE
    likeliest = model.eval()(source, mask, true).numpy().argmax(axis=-1)[:, :-1]
    np.testing.assert_array_equal(inputs[:, 1:], np.where(counted, likeliest, true[:, 1:]))
    np.testing.assert_array_equal(inputs[:, 0], true[:, 0])
    np.testing.assert_array_equal(targets, true_targets)


def test_a_batch_is_a_function_of_step_seed_and_weights_and_leaves_the_model_alone(model: Seq2Seq) -> None:
    one, two, other = (
        ScheduledSampling(PAIRS, model, fraction=0.5, steps=10, seed=seed) for seed in (1, 1, 2)
    )
    model.train()
    first = one.batch(8)[0].target
    one.batch(3)
    np.testing.assert_array_equal(one.batch(8)[0].target, first)
    np.testing.assert_array_equal(two.batch(8)[0].target, first)
    assert (other.batch(8)[0].target != first).any()
    assert model.training and not model.parameters().grad.any()


def test_targets_of_nothing_but_the_end_have_nothing_to_guess(model: Seq2Seq) -> None:
    empty = PairBatches([[3]], [[]], start=1, end=2, batch_size=1, block_size=4)
    assert ScheduledSampling(empty, model, fraction=1.0, steps=1).batch(5)[0].target.tolist() == [[1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"fraction": 1.5, "steps": 1}, "fraction is 1.5"), ({"fraction": 0.5, "steps": 0}, "steps is 0")],
)
def test_bad_settings_are_refused(model: Seq2Seq, settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScheduledSampling(PAIRS, model, **settings)


def test_a_model_asks_for_it_by_its_configuration() -> None:
    task = TranslationTask.of(PairCorpus("words", "1", [(f"word {i}", f"mot {i}") for i in range(200)]))
    for share in (0.0, 0.25):
        sizes = {"n_layer": 1, "n_embd": 16, "block_size": 16, "scheduled_sampling": share}
        batches = task.batches(make("seq2seq", **sizes, **task.sizes()), batch_size=32, steps=50)
        assert isinstance(batches, ScheduledSampling if share else PairBatches)
        if isinstance(batches, ScheduledSampling):
            assert [batches.fraction_at(step) for step in (0, 25, 50)] == [0.0, 0.125, 0.25]


def steps(trainer: Trainer, until: int) -> None:
    with cr.random.seeded(0):
        while trainer.steps < until:
            trainer.update(1e-2)


def test_a_run_that_is_stopped_goes_on_with_the_same_bits() -> None:
    settings = TrainConfig(max_steps=8, warmup=1, lr=1e-2)

    def trainer_of(state: dict[str, Any] | None = None) -> Trainer:
        cr.seed(0)
        made = Seq2Seq(Seq2SeqConfig(n_layer=1, n_head=2, n_embd=8, block_size=16, vocab_size=21))
        made.load(state or made.state())
        return Trainer(made, ScheduledSampling(PAIRS, made, fraction=0.9, steps=4), [], settings)

    whole, first = trainer_of(), trainer_of()
    steps(whole, 8)
    steps(first, 5)
    second = trainer_of(first.model.state())
    second.step.optimizer.load(first.step.optimizer.state())
    second.steps = first.steps
    steps(second, 8)
    assert (second.model.parameters().data == whole.model.parameters().data).all()


SMALL: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16, "scheduled_sampling": 0.9}


def test_a_run_that_is_extended_stopped_and_resumed_is_the_run_that_is_extended(tmp_path: Path) -> None:
    """The share of guesses grows to the same step before and after the stop."""
    path = tmp_path / "pairs.tsv"
    path.write_text("source\ttarget\n" + "".join(f"word {i}\tmot {i}\n" for i in range(200)))
    settings = TrainConfig(max_steps=4, batch_size=8, lr=1e-2, warmup=1, eval_every=100)
    runs = [
        Run.new(tmp_path / name, TranslationTask.find(path), settings, "seq2seq", **SMALL)
        for name in ("a", "b")
    ]
    for run in runs:
        run.train()
        run.extend(40)
    whole, stopped = runs
    steps(whole.trainer, 16)
    steps(stopped.trainer, 10)
    stopped.save()
    again = Run.resume(stopped.folder)
    steps(again.trainer, 16)
    assert isinstance(again.trainer.batches, ScheduledSampling)
    assert again.trainer.batches.fraction_at(20) == pytest.approx(0.45)
    assert (again.model.parameters().data == whole.model.parameters().data).all()


def test_a_budget_does_not_say_how_fast_the_share_grows(tmp_path: Path) -> None:
    pairs = PairCorpus("words", "1", [(f"word {i}", f"mot {i}") for i in range(200)])
    with pytest.raises(ConfigError, match=r"scheduled_sampling is 0.9 with a budget .*give max_steps"):
        Run.new(tmp_path / "run", pairs, TrainConfig(budget=9.0), "seq2seq", **SMALL)
    assert not (tmp_path / "run").exists()
