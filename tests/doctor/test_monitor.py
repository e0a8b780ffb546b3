"""What goes wrong while a model trains is found, said once, and remembered by the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.doctor import Code, Monitor
from chainrule.train import TrainConfig, Trainer
from chainrule.train.log import read
from chainrule.train.skips import Diverged
from tests.doctor.helpers import trainer_of, weight
from tests.runs.helpers import new_run
from tests.train.test_trainer import Told


def monitor_of(**options: Any) -> Monitor:
    return Monitor(TrainConfig(**options), n_classes=65)


def noise(n: int, spread: float = 0.05) -> Any:
    return np.random.default_rng(0).normal(0, spread, n)


def test_a_spike_is_said_once_and_again_when_it_has_passed() -> None:
    monitor = monitor_of()
    losses = 2.0 + noise(500)
    losses[200:205] = 5.0
    losses[400] = 5.0
    found = [(i, f) for i, loss in enumerate(losses) for f in monitor.step(float(loss), 0.5)]
    assert [i for i, _ in found] == [200, 400]
    finding = found[0][1]
    assert finding.code is Code.LOSS_SPIKE and "loss 5.000" in finding.measured and "lr" in finding.advice


def test_a_falling_loss_is_no_spike() -> None:
    losses = 4.0 * np.exp(-np.arange(600) / 200) + 1 + noise(600, 0.1)
    monitor = monitor_of()
    assert not [f for loss in losses for f in monitor.step(float(loss), 0.5)]


def test_a_few_wrong_labels_of_a_nearly_certain_classifier_are_no_spike() -> None:
    """Losses of small batches: most near 0.15, a few twice that. What stands out of these is a spike still."""
    losses = 0.15 * np.exp(np.random.default_rng(0).normal(0, 0.25, 2000))
    losses[1000] = 0.37  # 6.2 standard deviations, but only 2.5 times the mean
    monitor = monitor_of()
    losses[1500] = 1.5
    found = [(i, f.code) for i, loss in enumerate(losses) for f in monitor.step(float(loss), 0.5)]
    assert found == [(1500, Code.LOSS_SPIKE)]


def test_clipping_of_every_step() -> None:
    monitor = monitor_of(clip=1.0)
    found = [f for _ in range(500) for f in monitor.step(2.0, 10.5)]
    assert [f.code for f in found] == [Code.CLIPPING] and "10.5" in found[0].measured
    rarely, slightly = monitor_of(clip=1.0), monitor_of(clip=1.0)
    assert not [f for i in range(500) for f in rarely.step(2.0, 10.5 if i % 10 else 0.5)]
    assert not [f for _ in range(500) for f in slightly.step(2.0, 9.5)]  # usual, and Adam divides it out


def test_overfitting_is_validation_that_rises_while_training_falls() -> None:
    monitor = monitor_of()
    validations = [2.0, 1.8, 1.7, 1.75, 1.8, 1.9, 2.0]
    found = []
    for number, validation in enumerate(validations):
        for _ in range(10):
            monitor.step(1.9 - 0.2 * number, 0.5)
        found += [(number, f) for f in monitor.evaluation(10 * (number + 1), validation)]
    assert [(n, f.code) for n, f in found] == [(5, Code.OVERFITTING)]
    assert "1.700 at step 30" in found[0][1].measured


def risen(monitor: Monitor, last: float) -> list[Any]:
    """What is said of a validation loss that rises from 0.5 to `last` while training falls."""
    found = []
    for number, validation in enumerate([0.6, 0.5, last, last, last]):
        monitor.step(0.5 - 0.1 * number, 0.5)
        found += monitor.evaluation(number + 1, validation)
    return found


def test_overfitting_is_a_problem_only_where_the_best_step_is_not_the_one_used() -> None:
    [kept] = risen(monitor_of(keep="best"), 0.6)
    assert (kept.code, kept.level) == (Code.OVERFITTING, "note") and "best step" in kept.meaning
    [last] = risen(monitor_of(keep="last"), 0.6)
    assert (last.code, last.level) == (Code.OVERFITTING, "problem") and "best step" not in last.meaning


def test_a_rise_within_the_noise_of_validation_is_not_worth_a_line() -> None:
    assert risen(monitor_of(), 0.51) == []


def test_overfitting_of_a_tiny_text(tmp_path: Path) -> None:
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh"), 400))  # nothing to learn
    (tmp_path / "tiny.txt").write_text(text)
    config = TrainConfig(max_steps=300, batch_size=8, lr=1e-2, warmup=5, eval_every=25)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 32, "block_size": 16}
    run = cr.runs.Run.new(tmp_path / "run", cr.data.load(tmp_path / "tiny.txt"), config, **size)
    run.train()
    findings = [r["finding"] for r in read(run.files.log) if "finding" in r]
    assert [f["code"] for f in findings].count(Code.OVERFITTING) == 1


def test_a_rate_that_is_too_high(tmp_path: Path) -> None:
    run = new_run(tmp_path, lr=3.0, max_steps=150, eval_every=50, warmup=60, schedule="constant")
    with pytest.raises(Diverged):
        run.train()
    found = [r["finding"] for r in read(run.files.log) if "finding" in r]
    assert {f["code"] for f in found} & {Code.LOSS_SPIKE, Code.CURVE_DIVERGES, Code.CURVE_FLAT}
    assert any("lr" in f["advice"] or "learning rate" in f["advice"] for f in found)


def test_layers_that_no_longer_learn() -> None:
    trainer = trainer_of(max_steps=4)
    weight(trainer, "h.1.mlp.c_fc.weight")[...] = 0
    dict(trainer.model.named_parameters())["h.1.mlp.c_fc.bias"].array[
        ...
    ] = -100  # gelu is 0, and so is its slope
    told = Told()
    trainer.run(told)
    found = [note["finding"] for note in told.notes if "finding" in note]
    dead = next(f for f in found if f["code"] == Code.GRADIENT_ZERO)
    assert "h.1.mlp.c_fc.weight" in dead["measured"] or "h.1.mlp" in dead["measured"]


def test_updates_too_small_to_matter() -> None:
    trainer = trainer_of(lr=1e-9, max_steps=8)
    told = Told()
    trainer.run(told)
    found = [note["finding"] for note in told.notes if "finding" in note]
    assert [f["code"] for f in found] == [Code.UPDATES_SMALL]  # once, not twice
    assert "Below 1e-05" in found[0]["meaning"]


def test_a_resumed_run_says_what_an_unbroken_one_says(tmp_path: Path) -> None:
    """The doctor's memory is the log: losses, norms, evaluations, and what was said."""
    settings: dict[str, Any] = {"lr": 1e-9, "max_steps": 30, "save_every": 10}
    whole = new_run(tmp_path, "whole", **settings)
    whole.train()
    parts = new_run(tmp_path, "parts", **settings)
    stop = parts.trainer.finished
    assert not stop
    real = parts.trainer.update

    def update(lr: float) -> tuple[float, float]:
        if parts.trainer.steps == 15:
            raise KeyboardInterrupt
        return real(lr)

    parts.trainer.update = update  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        parts.train()
    again = cr.runs.Run.resume(parts.folder)
    again.train()

    def records(folder: Path) -> list[Any]:
        return [(r["step"], r.get("loss"), r.get("finding")) for r in read(folder / "log.jsonl")]

    assert records(whole.folder) == records(again.folder)
    assert sum("finding" in r for r in read(again.files.log)) == 1


def test_the_monitor_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = new_run(tmp_path, "watched")
    watched.train()
    monkeypatch.setattr(Trainer, "examine", lambda *_, **__: [])
    for name in ("step", "evaluation", "weights"):
        monkeypatch.setattr(Monitor, name, lambda *_: [])
    alone = new_run(tmp_path, "alone")
    alone.train()
    for saved in ("model", "optimizer"):
        one, two = (
            (run.folder / f"checkpoints/step_000030/{saved}.safetensors").read_bytes()
            for run in (watched, alone)
        )
        assert one == two
