"""Runs from beginning to end: they learn, they repeat bit for bit, they stop and go on."""

from __future__ import annotations

import math
import os
import shutil
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.errors import ChainruleError, ChainruleWarning, CheckpointError, ConfigError, DataError
from chainrule.files import alone
from chainrule.runs import Run, checkpoint, load_language_model, replay
from chainrule.runs.folder import free_folder, step_of
from chainrule.train import TrainConfig
from chainrule.train.best import Best
from chainrule.train.log import read
from tests.runs.helpers import SIZE, corpus, losses, new_run, validations
from tests.runs.survivors import TRAINERS, new, outcome, write_data


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def interrupt(run: Run, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until Ctrl-C in the middle of a step."""
    update = run.trainer.update

    def watched(lr: float) -> tuple[float, float]:
        if run.trainer.steps == step - 1:
            os.kill(os.getpid(), signal.SIGINT)
        return update(lr)

    monkeypatch.setattr(run.trainer, "update", watched)
    result = run.train()
    assert result.interrupted and result.steps == step


@pytest.mark.requirement("R-132", "R-513")
def test_the_same_seed_gives_the_same_log_bit_for_bit(tmp_path: Path) -> None:
    one, two, other = new_run(tmp_path, "one"), new_run(tmp_path, "two"), new_run(tmp_path, "other", seed=1)
    results = [run.train() for run in (one, two, other)]
    assert len(losses(one)) == 30
    assert losses(one) == losses(two)
    assert validations(one) == validations(two)
    assert validations(one)[-1] == (30, results[0].validation)  # held-out loss at the end
    assert same(one.model.state(), two.model.state())
    assert losses(one) != losses(other)


@pytest.mark.requirement("R-513")
@pytest.mark.parametrize("trainer", TRAINERS)
def test_every_trainer_repeats_its_log_and_its_weights(tmp_path: Path, trainer: str) -> None:
    """Initial weights, order of the data, masked words, dropout, negatives: all drawn of the seed."""
    write_data(tmp_path)
    for name in ("one", "two"):
        new(tmp_path, trainer, name).train()
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")


@pytest.mark.requirement("R-159", "R-513")
def test_the_folder_of_a_run_knows_the_seed_and_every_batch(tmp_path: Path) -> None:
    """With batch norm an output depends on the rest of its batch: from the folder alone each batch comes back."""
    config = TrainConfig(max_steps=4, batch_size=8, seed=5, warmup=0)
    run = Run.new(tmp_path / "run", corpus(tmp_path), config, "mlp", n_embd=4, n_hidden=8, block_size=3)
    batches = [run.trainer.batches.batch(step)[0].copy() for step in range(4)]
    run.train()
    folder = (tmp_path / "run").rename(tmp_path / "moved")
    assert run.model.config.batch_norm and Run.resume(folder).trainer.config.seed == 5
    found = [replay(folder, step) for step in (1, 2, 3, 4)]
    for step, batch in zip(found, batches, strict=True):
        assert step.same
        np.testing.assert_array_equal(step.inputs, batch)
        again = replay(folder, step.step)
        assert all((again.activations[name] == value).all() for name, value in step.activations.items())

    model, _ = load_language_model(folder)
    first, others = batches[0], batches[1]
    moved = np.concatenate([first[:1], others[1:]])  # the same text among others
    model.train()
    assert np.abs(model(first).numpy()[0] - model(moved).numpy()[0]).max() > 1e-3
    model.eval()
    np.testing.assert_allclose(model(first).numpy()[0], model(moved).numpy()[0], rtol=1e-5)


@pytest.mark.requirement("R-204")
def test_every_loss_is_written_down_with_the_number_of_parameters(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.train()
    size = sum(value.size for value in run.model.state().values())
    records = read(run.files.log)
    assert {"loss", "validation"} <= {key for record in records for key in record}
    assert all(record["parameters"] == size for record in records)


@pytest.mark.requirement("R-366")
def test_training_on_raw_text_beats_counting_characters(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=250, batch_size=8, eval_every=1000)
    first = run.trainer.evaluate()
    baselines = run.baselines()
    assert first == pytest.approx(baselines["uniform"], abs=0.1)
    assert run.train().validation < 0.95 * baselines["unigram"] < first


def test_evaluations_and_checkpoints_do_not_change_training(tmp_path: Path) -> None:
    rare, often = new_run(tmp_path, "a"), new_run(tmp_path, "b", eval_every=2, save_every=7)
    rare.train(), often.train()
    assert losses(rare) == losses(often)


def test_looking_inside_while_it_trains_changes_nothing(tmp_path: Path) -> None:
    blind, watched = new_run(tmp_path, "a"), new_run(tmp_path, "b", watch_every=10)
    blind.train(), watched.train()
    assert losses(blind) == losses(watched) and same(blind.model.state(), watched.model.state())
    seen = {record["step"]: record["watch"] for record in read(watched.files.log) if "watch" in record}
    assert list(seen) == [1, 10, 20, 30]
    assert seen[10]["parameters"].keys() == watched.model.state().keys()
    for name, value in watched.model.state().items():
        if value.ndim == 2:
            assert 0 < seen[10]["parameters"][name]["update_ratio"] < 1
    assert all(layer["std"] > 0 for layer in seen[10]["layers"].values())


def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = new_run(tmp_path, "whole")
    whole.train()

    stopped = new_run(tmp_path, "stopped")
    interrupt(stopped, 17, monkeypatch)
    resumed = Run.resume(stopped.folder)
    resumed.train()
    assert losses(resumed) == losses(whole)
    assert validations(resumed)[-1] == validations(whole)[-1]
    assert same(resumed.model.state(), whole.model.state())
    assert same(resumed.trainer.step.optimizer.state(), whole.trainer.step.optimizer.state())


def test_a_crash_costs_the_steps_since_the_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    whole, crashed = new_run(tmp_path, "whole"), new_run(tmp_path, "crashed")
    whole.train()
    update = crashed.trainer.update

    def update_until_25(lr: float) -> tuple[float, float]:
        if crashed.trainer.steps == 25:
            raise MemoryError
        return update(lr)

    crashed.trainer.update = update_until_25  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        crashed.train()
    assert len(losses(crashed)) == 25

    resumed = Run.resume(crashed.folder)
    assert resumed.trainer.steps == 20
    resumed.train()
    assert losses(resumed) == losses(whole)  # steps 21 to 25 stand in the log once


@pytest.mark.parametrize(
    "options",
    [
        {"ema": 0.9},
        {"patience": 2},
        {"accumulate": 3},
        {"recompute": True},
        {"schedule": "cosine"},
        {"compile": False},
    ],
    ids=str,
)
def test_every_option_goes_on_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    whole, stopped = new_run(tmp_path, "whole", **options), new_run(tmp_path, "stopped", **options)
    whole.train()
    interrupt(stopped, 17, monkeypatch)
    again = Run.resume(stopped.folder)
    assert again.trainer.steps == 17
    again.train()
    assert losses(again) == losses(whole)
    assert same(again.model.state(), whole.model.state())
    assert same(load_language_model(again.folder)[0].state(), load_language_model(whole.folder)[0].state())
    if again.trainer.step.average and whole.trainer.step.average:
        assert (again.trainer.step.average.mean == whole.trainer.step.average.mean).all()


def test_the_mean_of_the_weights_is_what_is_used(tmp_path: Path) -> None:
    run = new_run(tmp_path, ema=0.9, keep="last")
    result = run.train()
    used, _ = load_language_model(run.folder)
    assert used.mean_loss(run.trainer.eval_batches) == result.validation
    assert not same(used.state(), run.model.state())


def test_a_run_that_was_stopped_early_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path, patience=1, max_steps=100)
    found = iter([1.0, 2.0])
    monkeypatch.setattr(run.trainer, "evaluate", lambda: next(found))
    assert run.train().best == (10, 1.0)
    again = Run.resume(run.folder)
    assert again.finished and again.trainer.best == (10, 1.0)
    assert sorted(p.name for p in (run.folder / "checkpoints").iterdir()) == ["step_000010", "step_000020"]


@pytest.mark.parametrize("settings", [{"max_steps": 20}, {"patience": 1, "max_steps": 100}], ids=str)
def test_a_run_is_used_at_its_best_and_goes_on_from_its_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    run = new_run(tmp_path, **settings)
    found, seen = iter([1.0, 2.0]), []

    def evaluate() -> float:
        seen.append(run.model.state())
        return next(found)

    monkeypatch.setattr(run.trainer, "evaluate", evaluate)
    run.train()
    used = load_language_model(run.folder)[0].state()
    assert same(used, seen[0]) and not same(used, seen[1])
    assert same(Run.resume(run.folder).model.state(), seen[1])
    assert same(
        load_language_model(run.folder / "checkpoints" / "step_000020")[0].state(), seen[1]
    )  # asked for by name


def test_a_run_may_keep_its_last_and_says_in_any_case_which_was_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path, max_steps=20, save_every=20, keep="last")
    found = iter([1.0, 2.0])
    monkeypatch.setattr(run.trainer, "evaluate", lambda: next(found))
    assert run.train().best == (10, 1.0)
    assert [step_of(path) for path in run.files.saved()] == [0, 20]  # no checkpoint at the best
    assert same(load_language_model(run.folder)[0].state(), run.model.state())
    kept = checkpoint.load(run.folder).training["best"]
    assert kept == {"step": 10, "loss": 1.0, "score": None, "waited": 1}


def test_a_best_checkpoint_that_is_damaged_or_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path, max_steps=20)
    found = iter([1.0, 2.0])
    monkeypatch.setattr(run.trainer, "evaluate", lambda: next(found))
    run.train()
    best = run.files.checkpoint(10)
    (best / "model.safetensors").write_bytes(b"")
    for _ in range(2):
        with pytest.warns(ChainruleWarning, match=r"step_000010.*; taking step 20 instead"):
            used = load_language_model(run.folder)[0].state()
        assert same(used, run.model.state())
        shutil.rmtree(best, ignore_errors=True)


def test_runs_of_versions_that_knew_the_best_only_with_patience(tmp_path: Path) -> None:
    old = {
        "step": 30,
        "stopping": {"patience": 2, "min_delta": 0.0, "best": 1.5, "best_step": 10, "waited": 1},
    }
    assert Best.from_dict(old) == Best(10, 1.5, None, 1)
    assert Best.from_dict({"step": 30, "stopping": None}) == Best() and Best().known is None
    assert not Best().update(1, math.nan)


def test_a_run_that_was_stopped_early_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path, patience=1, max_steps=40)
    found = iter([1.0, 2.0])
    monkeypatch.setattr(run.trainer, "evaluate", lambda: next(found))
    assert run.train().steps == 20
    again = Run.resume(run.folder)
    again.extend(80)
    assert not again.finished
    monkeypatch.setattr(again.trainer, "evaluate", lambda: 1.5)  # no better, so its patience ends again
    assert again.train().steps == 30 and again.trainer.best == (10, 1.0)


def test_a_run_on_a_budget_is_the_run_with_that_many_steps(tmp_path: Path) -> None:
    budget = new_run(tmp_path, "budget", budget=1.0)
    result = budget.train()
    assert budget.trainer.plan.total is not None
    steps = new_run(tmp_path, "steps", max_steps=budget.trainer.plan.total)
    steps.train()
    assert losses(steps)[: result.steps] == losses(budget)


def test_a_budget_too_short_for_its_warm_up_ends_on_time_with_a_small_rate(tmp_path: Path) -> None:
    run = new_run(tmp_path, budget=2.0, warmup=100_000, eval_every=10_000, save_every=10_000)
    run.train()
    rates = [record["lr"] for record in read(run.files.log) if "lr" in record]
    assert run.trainer.plan.total is not None
    assert rates[-1] < 0.5 * max(rates)  # a fiftieth, but on a machine that slows down the end is cut off
    again = Run.resume(run.folder)
    assert [again.trainer.plan.lr(step) for step in range(len(rates))] == pytest.approx(rates)


def test_samples_are_those_of_the_weights_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path, ema=0.9, max_steps=5)
    run.train()
    seen = []
    monkeypatch.setattr(type(run.task), "sample", lambda self, model, seed: seen.append(model.state()) or "")
    raw = run.model.state()
    run.sample()
    assert same(seen[0], load_language_model(run.folder)[0].state()) and not same(seen[0], raw)
    assert same(run.model.state(), raw)


def test_a_saved_model_is_the_model(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=5)
    run.train()
    model, tokenizer = load_language_model(run.folder)
    ids = tokenizer.encode("The value")[None]
    assert not model.training
    assert tokenizer == run.tokenizer
    assert (model(ids).numpy() == run.model.eval()(ids).numpy()).all()


def test_a_rate_that_is_too_high_stops_before_the_weights_break(tmp_path: Path) -> None:
    run = new_run(tmp_path, lr=1e30, weight_decay=0.0, warmup=0)
    with (
        pytest.raises(ChainruleError, match=r"at step \d+ .*smaller lr than 1e\+30"),
        np.errstate(all="ignore"),
    ):
        run.train()
    assert run.trainer.steps > 0 and all(np.isfinite(value).all() for value in run.model.state().values())


def test_two_processes_cannot_share_a_run(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with alone(run.folder), pytest.raises(ConfigError, match="another process"):
        run.train()
    run.train()


@pytest.mark.parametrize("good", [0, 5])
def test_a_run_without_a_single_step_leaves_nothing_and_others_keep_their_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: int
) -> None:
    run = new_run(tmp_path)
    update = run.trainer.update

    def fails(lr: float) -> tuple[float, float]:
        if run.trainer.steps == good:
            raise MemoryError
        return update(lr)

    monkeypatch.setattr(run.trainer, "update", fails)
    with pytest.raises(MemoryError):
        run.train()
    assert run.folder.exists() == (good > 0)
    assert len(losses(run)) == good


def test_a_model_larger_than_the_machine_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"parameters take .* GiB to train, this machine has"):
        Run.new(tmp_path / "huge", load("pydoc"), n_embd=10**8, n_head=1)
    assert not (tmp_path / "huge").exists()


def test_a_resume_needs_the_same_text(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=2)
    run.train()
    Path(run.corpus.name).write_text("something else", encoding="utf-8")
    with pytest.raises(DataError, match="has changed since the run began"):
        Run.resume(run.folder)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=2)
    run.train()
    saved = checkpoint.load(run.folder)
    for change, message in [
        (
            {"config": saved.config | {"model_type": "gtp2"}},
            "model_type is 'gtp2' .is not known; must be one of gpt2",
        ),
        ({"config": saved.config | {"n_layer": "two"}}, "config.json does not fit .*n_layer is 'two'"),
        ({"config": saved.config | {"n_embd": 32}}, "the sizes ask for 1.* parameters"),
        ({"config": saved.config | {"n_embd": 8}}, "shape"),
        ({"tokenizer": {"type": "char", "characters": "ab"}}, "tokenizer of 2 tokens"),
        ({"tokenizer": {"type": []}}, r"tokenizer: type \[\] \(must be one of"),
        ({"training": {"step": 2}}, "training.json does not fit"),
    ]:
        checkpoint.save(tmp_path / "other", checkpoint.Checkpoint(**vars(saved) | change))
        with pytest.raises(ChainruleError, match=message):
            Run.resume(tmp_path / "other")


def test_a_new_run_leaves_what_is_there_alone(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=2)
    run.save()
    with pytest.raises(ConfigError, match="not empty"):
        new_run(tmp_path, max_steps=2)
    assert free_folder(run.folder) == tmp_path / "run-2"
    (tmp_path / "run-2").mkdir()
    assert free_folder(run.folder) == tmp_path / "run-3"
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        new_run(tmp_path, "file/below")


def test_a_text_too_short_for_the_context_is_refused_and_leaves_no_directory(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("To be, or not to be")
    with pytest.raises(DataError, match="training text: 17 tokens, block_size 64"):
        Run.new(tmp_path / "run", load(short), **SIZE | {"block_size": 64})
    with pytest.raises(DataError, match="validation text: 2 tokens, block_size 16"):
        Run.new(tmp_path / "run", load(short), **SIZE)
    assert not (tmp_path / "run").exists()


def test_a_run_without_a_checkpoint_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        Run.resume(tmp_path)
    with pytest.raises(CheckpointError, match="no such directory"):
        Run.resume(tmp_path / "none")


def test_baselines_are_those_of_counting(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    text = run.corpus.text
    train, validation = text[:18_000], text[18_000:]
    V = len(set(text))
    found = run.baselines()
    assert found["uniform"] == math.log(V)
    p = {c: (train.count(c) + 1) / (len(train) + V) for c in set(text)}
    unigram = -sum(math.log(p[c]) for c in validation[1:]) / len(validation[1:])
    assert found["unigram"] == pytest.approx(unigram, rel=1e-12)
    pairs, befores = Counter(pairwise(train)), Counter(train[:-1])
    bigram = [(pairs[a, b] + 1) / (befores[a] + V) for a, b in pairwise(validation)]
    assert found["bigram"] == pytest.approx(-sum(map(math.log, bigram)) / len(bigram), rel=1e-12)


def test_damage_of_the_newest_checkpoint_is_no_trouble_to_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = new_run(tmp_path, max_steps=20)
    found = iter([1.0, 2.0])
    monkeypatch.setattr(run.trainer, "evaluate", lambda: next(found))
    run.train()
    (run.files.checkpoint(20) / "training.json").write_bytes(b"{")
    main(["sample", str(run.folder), "--max-new-tokens", "3"])
    assert "taking step_000010 instead" in capsys.readouterr().err
