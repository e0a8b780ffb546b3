"""The training loop by itself: microbatches, averaged weights, patience, steps that are not finite."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.autograd import Tensor
from chainrule.data import Batches, Streams
from chainrule.doctor import Code
from chainrule.errors import ChainruleError, ConfigError
from chainrule.models import IGNORE, Compiled, Model, make
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch, cut, join
from chainrule.optim import global_norm
from chainrule.optim.schedules import cosine
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.progress import progress_of, restore
from chainrule.train import TrainConfig, Trainer
from chainrule.train.ema import Average
from chainrule.train.log import Logger
from chainrule.train.plan import Plan

IDS = np.random.default_rng(0).integers(0, 11, 2000)


class Told(Logger):
    """A log that remembers."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.validations: list[tuple[int, float]] = []
        self.notes: list[dict[str, Any]] = []

    def step(self, step: int, loss: float, **_: Any) -> None:
        self.losses.append(loss)

    def evaluation(self, step: int, loss: float, **_: Any) -> None:
        self.validations.append((step, loss))

    def note(self, step: int, record: dict[str, Any], *said: str) -> None:
        self.notes.append({"step": step} | record)


def model_of(family: str = "gpt", **sizes: Any) -> Any:
    defaults: dict[str, dict[str, Any]] = {
        "gpt": {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 8},
        "llama": {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 8},
        "gru": {"n_layer": 2, "n_embd": 8, "n_hidden": 12, "block_size": 8},
        "mlp": {"n_layer": 1, "n_embd": 8, "n_hidden": 12, "block_size": 8},
    }
    cr.seed(1)
    return make(family, **defaults[family] | {"vocab_size": 11} | sizes)


def trainer_of(model: Model | None = None, **options: Any) -> Trainer:
    model = model or model_of()
    kind = Streams if hasattr(model, "start") else Batches
    batches = kind(IDS, batch_size=6, block_size=8, seed=0)
    exam = [Batches(IDS, batch_size=4, block_size=8, seed=5).batch(n) for n in range(2)]
    defaults = {"max_steps": 12, "batch_size": 6, "lr": 1e-2, "warmup": 2, "eval_every": 4, "save_every": 4}
    return Trainer(model, batches, exam, TrainConfig(**defaults | options))


def weights(trainer: Trainer) -> dict[str, Any]:
    return dict(trainer.model.state())


def apart(a: dict[str, Any], b: dict[str, Any]) -> float:
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


# -- microbatches ---------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Any
    right: Any


@given(rows=st.integers(1, 9), microbatches=st.integers(1, 12))
def test_what_is_cut_can_be_joined(rows: int, microbatches: int) -> None:
    whole = Pair(np.arange(rows), ((np.arange(2 * rows).reshape(rows, 2),),))
    parts = list(cut(whole, microbatches))
    assert len(parts) == min(rows, microbatches) and all(isinstance(part, Pair) for part in parts)
    assert max(len(p.left) for p in parts) - min(len(p.left) for p in parts) <= 1
    again = join(parts)
    assert again.left.tolist() == whole.left.tolist() and (again.right[0][0] == whole.right[0][0]).all()


def gradient(model: Model, work: Batch, **options: Any) -> tuple[float, np.ndarray[Any, Any], Any]:
    parameters = model.parameters()
    parameters.zero_grad()
    loss, state = backward(model, work, **options)
    return loss, parameters.grad.copy(), state


@settings(max_examples=20, deadline=None)
@given(microbatches=st.integers(2, 7), seed=st.integers(0, 99), share=st.floats(0.0, 0.95))
def test_cutting_a_batch_does_not_change_its_gradient(microbatches: int, seed: int, share: float) -> None:
    """Targets fall unevenly, and some microbatches have none."""
    rng = np.random.default_rng(seed)
    model = model_of().to(np.float64)
    inputs, targets = rng.integers(0, 11, (7, 8)), rng.integers(0, 11, (7, 8))
    targets[rng.random((7, 8)) < share] = IGNORE
    targets[3, 2] = 4
    whole, split = (gradient(model, Batch(inputs, targets), accumulate=n) for n in (1, microbatches))
    assert math.isclose(whole[0], split[0], rel_tol=1e-12)
    np.testing.assert_allclose(split[1], whole[1], rtol=1e-9, atol=1e-12)


class TwoParts(Model):
    """A loss of two means over different numbers of targets."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lm = model_of()

    def losses(self, inputs: Any, targets: Any) -> tuple[Tensor, ...]:
        labels = inputs.right
        logits = self.lm(inputs.left)
        first = cr.ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE)
        return first, cr.ops.cross_entropy(logits[:, 0], targets=labels)

    def counts(self, inputs: Any, targets: Any) -> tuple[int, ...]:
        return (*super().counts(inputs, targets), len(inputs.right))


@pytest.mark.parametrize("microbatches", [2, 3, 5])
def test_every_part_of_a_loss_keeps_its_own_mean(microbatches: int) -> None:
    rng = np.random.default_rng(1)
    model = TwoParts().to(np.float64)
    inputs = Pair(rng.integers(0, 11, (5, 8)), rng.integers(0, 11, 5))
    targets = rng.integers(0, 11, (5, 8))
    targets[1:, 3:] = IGNORE
    whole, split = (gradient(model, Batch(inputs, targets), accumulate=n) for n in (1, microbatches))
    np.testing.assert_allclose(split[1], whole[1], rtol=1e-9, atol=1e-12)
    assert math.isclose(whole[0], split[0], rel_tol=1e-12)
    assert math.isclose(model.mean_loss([(inputs, targets)]), whole[0], rel_tol=1e-12)


@pytest.mark.parametrize("microbatches", [2, 6])
def test_a_carried_state_is_cut_and_joined_too(microbatches: int) -> None:
    model = model_of("gru").to(np.float64)
    batches = Streams(IDS, batch_size=6, block_size=8, seed=0)
    _, _, state = gradient(model, Batch(*batches.batch(0), model.initial_state(6)))
    whole, split = (gradient(model, Batch(*batches.batch(1), state), accumulate=n) for n in (1, microbatches))
    np.testing.assert_allclose(split[1], whole[1], rtol=1e-9, atol=1e-12)
    for a, b in zip(whole[2], split[2], strict=True):
        np.testing.assert_allclose(a[0], b[0], rtol=1e-12)


@pytest.mark.parametrize("family", ["gpt", "gru"])
def test_training_split_is_the_same_training(family: str) -> None:
    runs = []
    for microbatches in (1, 4):
        trainer, told = trainer_of(model_of(family), accumulate=microbatches), Told()
        trainer.run(told)
        runs.append((told.losses, weights(trainer)))
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=1e-3)
    assert runs[0][0] != runs[1][0] or apart(runs[0][1], runs[1][1]) == 0  # rounded differently
    assert apart(runs[0][1], runs[1][1]) < 5e-3


@pytest.mark.parametrize(("family", "sizes"), [("gpt", {"dropout": 0.2}), ("llama", {})])
def test_recomputing_gives_the_same_bits(family: str, sizes: dict[str, Any]) -> None:
    """Dropout included: it falls on the same places the second time."""
    runs = []
    for recompute in (False, True):
        trainer = trainer_of(model_of(family, **sizes), recompute=recompute)
        trainer.run(Told())
        runs.append(weights(trainer))
    assert apart(*runs) == 0


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("gpt", {}),
        ("llama", {"accumulate": 2, "ema": 0.9}),
        ("gru", {"recompute": True}),
        ("gpt", {"precision": "fp16", "watch_every": 5}),
        ("mlp", {}),
    ],
)
def test_compiled_steps_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, family: str, options: dict[str, Any]
) -> None:
    runs, replayed = [], []
    monkeypatch.setattr(Compiled, "forget", lambda self: replayed.append(self.replayed))
    for compile in (False, True):
        sizes = {"dropout": 0.2} if family == "gpt" else {}
        trainer, told = (
            trainer_of(model_of(family, **sizes), max_steps=20, compile=compile, **options),
            Told(),
        )
        trainer.run(told)
        runs.append((told.losses, told.validations, weights(trainer)))
    assert runs[0][:2] == runs[1][:2] and apart(runs[0][2], runs[1][2]) == 0
    # Of two microbatches the first overwrites the gradients of the step before, the second adds to them.
    assert replayed == [options.get("accumulate", 1)]


# -- averaged weights -----------------------------------------------------------------------------------------


def test_the_average_is_the_running_mean_of_the_weights() -> None:
    trainer, seen = trainer_of(ema=0.5), []
    assert trainer.step.average
    expected = trainer.model.parameters().data.copy()
    update = trainer.update

    def watched(lr: float) -> tuple[float, float]:
        result = update(lr)
        seen.append(trainer.model.parameters().data.copy())
        return result

    trainer.update = watched  # type: ignore[method-assign]
    trainer.run(Told())
    for step, values in enumerate(seen, 1):
        beta = min(0.5, (1 + step) / (10 + step))
        expected = beta * expected + (1 - beta) * values
    np.testing.assert_allclose(trainer.step.average.mean, expected, atol=1e-6)
    before = trainer.model.parameters().data.copy()
    with trainer.step.average.in_place():
        np.testing.assert_allclose(trainer.model.parameters().data, expected, atol=1e-6)
        judged = trainer.model.eval().mean_loss(trainer.eval_batches)
    assert (trainer.model.parameters().data == before).all()
    assert trainer.evaluate() == judged != trainer.model.mean_loss(trainer.eval_batches)


def test_averaging_does_not_change_training_and_goes_on_from_what_was_saved() -> None:
    plain, averaged = trainer_of(), trainer_of(ema=0.9)
    plain.run(Told()), averaged.run(Told())
    assert apart(weights(plain), weights(averaged)) == 0
    assert averaged.step.average
    with averaged.step.average.in_place():
        saved = averaged.model.state()
    model = model_of()
    model.load(saved)  # as a checkpoint has it: the mean begins with the weights that are there
    again = Average(model.parameters(), 0.9)
    assert (again.mean == averaged.step.average.mean).all()


# -- patience -------------------------------------------------------------------------------------------------


def test_training_ends_when_nothing_better_comes_and_the_best_was_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer, told, saved = trainer_of(max_steps=100, eval_every=2, save_every=1000, patience=3), Told(), []
    found = iter([3.0, 2.0, 2.5, 2.1, 2.0, 1.0])
    monkeypatch.setattr(trainer, "evaluate", lambda: next(found))
    result = trainer.run(told, lambda: saved.append(trainer.steps))
    assert [step for step, _ in told.validations] == [2, 4, 6, 8, 10]
    assert result.best == (4, 2.0) and result.steps == 10 and not result.interrupted
    assert saved == [2, 4, 10]


def test_an_interruption_saves_first_and_does_not_try_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unbroken run does not judge at that step: what it finds there, however bad, must leave no trace."""
    trainer, told, events = trainer_of(max_steps=100, eval_every=4, patience=1), Told(), []
    found = iter([2.0, 9.0])
    update = trainer.update

    def evaluate() -> float:
        events.append(("judged", trainer.steps))
        return next(found)

    def interrupted(lr: float) -> tuple[float, float]:
        if trainer.steps == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return update(lr)

    monkeypatch.setattr(trainer, "evaluate", evaluate)
    monkeypatch.setattr(trainer, "update", interrupted)
    result = trainer.run(told, lambda: events.append(("saved", trainer.steps)))
    assert result.interrupted and (result.steps, result.validation, result.best) == (6, 9.0, (4, 2.0))
    assert events[-2:] == [("saved", 6), ("judged", 6)]
    assert trainer.best_so_far.waited == 0 and not trainer.finished
    assert told.validations == [(4, 2.0)]


# -- steps that are not finite --------------------------------------------------------------------------------


def poisoned(trainer: Trainer, bad: set[int]) -> None:
    trainer.step.share.compiled = (
        None  # the loss depends on the number of the step, which a recording does not see
    )
    loss = type(trainer.model).loss

    def sick(inputs: Any, targets: Any) -> Tensor:
        value = loss(trainer.model, inputs, targets)
        return value * math.nan if trainer.steps in bad else value

    trainer.model.loss = sick  # type: ignore[method-assign]


@pytest.mark.parametrize("family", ["gpt", "mlp"])
def test_a_step_that_is_not_finite_stops_the_training_and_changes_nothing(family: str) -> None:
    """Of a model with batch norm, the running statistics neither."""
    trainer, healthy = (trainer_of(model_of(family), max_steps=n, schedule="constant") for n in (12, 5))
    poisoned(trainer, {5})
    with pytest.raises(ChainruleError, match=r"loss nan, gradient norm nan at step 6 .*was not taken"):
        trainer.run(Told())
    healthy.run(Told())
    assert trainer.steps == 5 and apart(weights(trainer), weights(healthy)) == 0


def test_it_can_be_skipped_instead_and_is_counted() -> None:
    trainer, told = trainer_of(on_nan="skip"), Told()
    poisoned(trainer, {3, 7})
    assert trainer.run(told).steps == 12
    assert [note["step"] for note in told.notes if "skipped" in note] == [4, 8]
    assert trainer.step.optimizer.steps == 10
    assert all(np.isfinite(value).all() for value in weights(trainer).values())


@pytest.mark.parametrize("compile", [False, True])
def test_running_statistics_survive_a_step_that_is_skipped(compile: bool) -> None:
    """By a replay as well: the sixth step is one."""
    trainer, told = trainer_of(model_of("mlp"), on_nan="skip", compile=compile), Told()
    share, weight = trainer.step.share, next(iter(trainer.model.parameters().values()))
    backward = share.backward

    def sick(*args: Any) -> Any:
        healthy = weight.array.copy()
        if trainer.steps == 5:
            weight.array[...] = math.nan
            assert share.compiled is None or share.compiled.replayed == 1
        try:
            return backward(*args)
        finally:
            weight.array[...] = healthy

    share.backward = sick  # type: ignore[method-assign]
    result = trainer.run(told)
    assert [note["step"] for note in told.notes if "skipped" in note] == [6]
    assert all(np.isfinite(value).all() for value in weights(trainer).values())
    assert math.isfinite(result.validation)


def test_a_step_left_out_for_the_scale_of_fp16_is_told() -> None:
    trainer, told = trainer_of(precision="fp16"), Told()
    trainer.step.scale.factor = 2.0**41
    before = weights(trainer)
    trainer._advance(told, 0.0)
    assert apart(before, weights(trainer)) == 0
    (said,) = (note["skipped"] for note in told.notes if "skipped" in note)
    assert "at step 1 in fp16; from now on the loss is scaled by 1.09951e+12" in said
    trainer.step.scale.factor = 2.0**10
    trainer._advance(told, 0.0)
    assert len([note for note in told.notes if "skipped" in note]) == 1


def test_skipping_gives_up_after_a_while() -> None:
    trainer, told = trainer_of(on_nan="skip", max_steps=100, eval_every=100), Told()
    poisoned(trainer, set(range(3, 100)))
    with pytest.raises(ChainruleError, match=r"at step 24 .*after 20 such steps in a row"):
        trainer.run(told)
    assert len(told.losses) == 23


def test_a_run_that_is_resumed_has_not_forgotten_what_it_skipped(tmp_path: Path) -> None:
    first, second = (trainer_of(on_nan="skip", max_steps=100, eval_every=100) for _ in range(2))
    for trainer in (first, second):
        poisoned(trainer, set(range(3, 100)))
    while first.steps < 18:  # 15 of them skipped
        first._advance(Told(), 0.0)
    saved = Checkpoint(first.model.state(), first.step.optimizer.state(), {}, {}, progress_of(first))
    second.model.load(saved.model)
    restore(second, second.model, saved, tmp_path)
    with pytest.raises(ChainruleError, match=r"at step 24 .*after 20 such steps in a row"):
        second.run(Told())


def test_the_doctor_is_shown_the_gradient_as_it_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipping is done by the optimizer, so the block holds the gradient before it."""
    trainer, told, seen = trainer_of(max_steps=4, eval_every=1, clip=1e-3), Told(), []

    def weights(parameters: Any, optimizer: Any) -> list[Any]:
        seen.append(global_norm(parameters))
        return []

    monkeypatch.setattr(trainer.monitor, "weights", weights)
    trainer.run(told)
    np.testing.assert_allclose(seen, 1e-3, rtol=1e-4)
    trainer.gradient.share.complete()  # once more changes nothing
    assert global_norm(trainer.model.parameters()) == seen[-1]


@pytest.mark.parametrize("save_every", [1, 100])
def test_weights_that_the_update_itself_breaks_are_no_result_and_not_kept(save_every: int) -> None:
    """The loss and the gradient of the step were finite."""
    trainer, told, kept = trainer_of(max_steps=3, save_every=save_every, on_nan="skip"), Told(), []
    step = trainer.step.optimizer.step

    def sick(lr: float | None = None, **options: float) -> None:
        step(lr, **options)
        if trainer.steps == 2:
            next(iter(trainer.model.parameters().values())).array[0, 1] = math.inf

    trainer.step.optimizer.step = sick  # type: ignore[method-assign]
    with pytest.raises(ChainruleError, match=r"weight\[0, 1\] is inf after step 3 \(must be finite\)"):
        trainer.run(told, save=lambda: kept.append(trainer.steps))
    assert all(np.isfinite(told.losses)) and 3 not in kept
    assert told.notes[-1]["finding"]["code"] == Code.NOT_FINITE_UPDATE
    with pytest.raises(
        ChainruleError, match=r"validation loss .* after step 3"
    ):  # nor when it is judged again
        trainer.run(told)


def test_a_validation_that_is_not_finite_is_no_result() -> None:
    trainer, told = trainer_of(max_steps=3), Told()
    trainer.evaluate = lambda: math.inf  # type: ignore[method-assign]
    with pytest.raises(ChainruleError, match="validation loss inf, every weight is finite after step 3"):
        trainer.run(told)


# -- samples and schedules ------------------------------------------------------------------------------------


def test_samples_come_when_they_are_due() -> None:
    trainer, told = trainer_of(sample_every=5), Told()
    trainer.run(told, sample=lambda: f"text {trainer.steps}")
    assert told.notes == [{"step": 5, "sample": "text 5"}, {"step": 10, "sample": "text 10"}]


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("constant", [1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ("step", [1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1, 1, 0.1, 0.1]),
        ("linear", [1 / 3, 2 / 3, 1, 0.8875, 0.775, 0.6625, 0.55, 0.4375, 0.325, 0.2125, 0.1]),
        ("wsd", [1 / 3, 2 / 3, 1, 1, 1, 1, 0.82, 0.64, 0.46, 0.28, 0.1]),
        ("inverse_sqrt", [0.5, 0.5, 1, (2 / 3) ** 0.5, 0.5**0.5]),
    ],
)
def test_the_rate_follows_the_schedule(name: str, rates: list[float]) -> None:
    plan = Plan(TrainConfig(max_steps=10, lr=1.0, min_lr=0.1, warmup=2, schedule=name))
    assert [plan.lr(step) for step in range(len(rates))] == pytest.approx(rates)
    config = TrainConfig(max_steps=10, lr=1.0, min_lr=0.1, warmup=2, schedule="cosine")
    expected = cosine(1.0, 10, warmup=2, final=0.1)
    assert [Plan(config).lr(step) for step in range(12)] == [expected(step) for step in range(12)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "sine"}, "schedule is 'sine' .*one of wsd"),
        ({"schedule": "cosine", "budget": 9.0}, "wsd with a budget"),
        ({"accumulate": 9, "batch_size": 8}, "accumulate is 9, batch_size 8 .*at most the batch size"),
        ({"min_lr": 1.0}, "min_lr is 1.0, lr 0.003 .*from 0 to the learning rate"),
        ({"ema": 1.0}, "ema is 1.0"),
        ({"ema": math.nan}, "ema is nan"),
        ({"on_nan": "pray"}, "on_nan is 'pray' .*stop, skip"),
        ({"patience": -1}, "patience is -1"),
        ({"lr": 1e-3, "weight_decay": 1e3}, "lr is 0.001, weight_decay 1000.0 .*product must be below 1"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**settings)


# -- before the first step ------------------------------------------------------------------------------------


def test_nothing_is_best_before_the_first_evaluation() -> None:
    trainer = trainer_of()
    assert trainer.best is None and trainer.best_so_far.to_dict() is None
    trainer.best_so_far.update(0, 2.0)
    assert trainer.best == (0, 2.0)


def test_recomputing_is_asked_of_a_head_and_of_its_body() -> None:
    """Or it is not asked of the body, which has the layers."""
    cr.seed(0)
    model = make("bert-classifier", n_layer=1, n_head=2, n_embd=8, block_size=8, vocab_size=11, classes=2)
    for recompute in (True, False):
        trainer_of(model, recompute=recompute)
        assert model.recompute is model.bert.recompute is recompute


def test_a_new_model_is_examined_as_one_that_knows_nothing() -> None:
    trainer = trainer_of()
    assert Code.INITIAL_LOSS_OK in {finding.code for finding in trainer.examine()}
    assert Code.INITIAL_LOSS_OK not in {finding.code for finding in trainer.examine(fresh=False)}


def test_examples_that_are_compared_with_each_other_are_not_taken_apart() -> None:
    cr.seed(0)
    model = make("bert-embedder", n_layer=1, n_head=2, n_embd=8, block_size=8, vocab_size=11)
    with pytest.raises(ConfigError, match=r"accumulate is 2 \(must be 1 for a BERTEmbedder"):
        trainer_of(model, accumulate=2)


def test_a_model_that_sees_what_it_predicts_is_not_trained() -> None:
    model = model_of()
    model.h = [cr.nn.TransformerBlock(16, 2, causal=False)]
    trainer = trainer_of(model)
    with pytest.raises(ConfigError, match="learns the next token and sees it"):
        trainer.run(Told())
    assert trainer.steps == 0
