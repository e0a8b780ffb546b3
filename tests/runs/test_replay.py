"""A step made again is the step that was made: same bits, and everything in it can be looked at."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.doctor import Code
from chainrule.errors import ChainruleError, CheckpointError, ConfigError
from chainrule.runs import Run, checkpoint, replay
from chainrule.train import TrainConfig
from chainrule.train.log import read
from tests.runs.helpers import new_run
from tests.runs.survivors import SETTINGS, TRAINERS, new, write_data

MODELS = [name for name in TRAINERS if name not in ("skip-gram", "cbow", "ppo")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("replay")
    write_data(made)
    return made


def saved(run: Any, step: int) -> dict[str, np.ndarray]:
    found = checkpoint.load(run.folder / "checkpoints" / f"step_{step:06d}")
    return Run.restored(run.folder, found).model.state()


@pytest.mark.parametrize("trainer", MODELS)
def test_any_step_of_any_model_comes_back_bit_for_bit(folder: Path, trainer: str) -> None:
    run = new(folder, trainer, f"{trainer}-run", save_every=1)
    run.train()
    first, last = (replay(run.folder, step) for step in (2, 9))
    assert (first.since, last.since) == (0, 8)
    for found in (first, last):
        assert found.same and found.differs is None
        logged = next(r for r in read(run.files.log) if r["step"] == found.step and "loss" in r)
        assert (found.loss, found.norm, found.lr) == (logged["loss"], logged["norm"], logged["lr"])
        assert len(found.texts) == SETTINGS["batch_size"] and any(row["wanted"] for row in found.texts)
    before, after = saved(run, 8), saved(run, 9)
    for name, update in last.updates.items():
        assert np.array_equal(last.weights[name], before[name])
        assert np.array_equal(update, after[name] - before[name])
    size = np.sqrt(sum(np.square(g, dtype=np.float64).sum() for g in last.gradients.values()))
    assert size == pytest.approx(min(last.norm, 1.0), rel=1e-4)  # clipped
    names = [layer.name for layer in last.report.layers]
    assert names == list(last.activations) and (names or trainer == "ngram")  # which is a single matrix


def test_a_run_with_a_function_of_ones_own_is_not_replayed_without_it(folder: Path) -> None:
    run = new(folder, "ppo", "ppo-run")
    run.train()
    with pytest.raises(ConfigError, match="uses a function of yours"):
        replay(run.folder, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"ema": 0.9},
        {"accumulate": 2},
        {"recompute": True},
        {"precision": "bf16"},
        {"precision": "fp16"},
        {"compile": False},
    ],
    ids=str,
)
def test_every_option_comes_back_bit_for_bit(tmp_path: Path, options: dict[str, Any]) -> None:
    run = new_run(tmp_path, max_steps=6, eval_every=6, save_every=4, **options)
    run.train()
    for step in (1, 3, 6):
        assert replay(run.folder, step).same


def test_the_text_of_the_batch_is_what_was_read(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=3)
    run.train()
    found = replay(run.folder, 2)
    inputs, _ = run.trainer.batches.batch(1)
    assert [row["text"] for row in found.texts] == [run.tokenizer.decode(row) for row in inputs]
    assert all(row["wanted"][:-1] == row["text"][1:] for row in found.texts)


def test_an_extended_run_is_replayed_with_the_rates_it_had(tmp_path: Path) -> None:
    new_run(tmp_path, max_steps=4).train()
    run = Run.resume(tmp_path / "run")
    run.extend(8)
    run.train()
    rates = [record["lr"] for record in read(run.files.log) if "lr" in record]
    assert rates[3] != run.trainer.plan.lr(3)
    assert all(replay(run.folder, step).same for step in (4, 5, 8))


def test_a_step_that_broke_the_run_can_be_opened(tmp_path: Path) -> None:
    run = new_run(tmp_path, lr=1e30, weight_decay=0.0, warmup=0, max_steps=30)
    with pytest.raises(ChainruleError, match="at step"), np.errstate(all="ignore"):
        run.train()
    broken = run.trainer.steps + 1
    found = replay(run.folder, broken)
    assert not np.isfinite(found.loss + found.norm) and found.logged is None and not found.same
    assert all((update == 0).all() for update in found.updates.values())  # the step was not taken
    assert any(
        finding.code in (Code.ACTIVATIONS_NOT_FINITE, Code.GRADIENT_NOT_FINITE)
        for finding in found.report.problems
    )


def test_another_code_or_machine_is_noticed(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=6, save_every=2)
    run.train()
    text = run.files.log.read_text()
    loss = next(record["loss"] for record in read(run.files.log) if record["step"] == 5)
    run.files.log.write_text(text.replace(repr(loss), repr(float(np.nextafter(loss, 0)))))
    found = replay(run.folder, 6)
    assert found.since == 4 and found.differs == 5 and not found.same


@pytest.mark.parametrize("step", [-1, 0, 5])
def test_a_step_that_was_not_made_is_refused(tmp_path: Path, step: int) -> None:
    run = new_run(tmp_path, max_steps=3)
    run.train()
    with pytest.raises(ConfigError, match=rf"step is {step}, .* has the steps 1 to 4 \(choose one of them\)"):
        replay(run.folder, step)
    with pytest.raises(ConfigError, match="is a checkpoint"):
        replay(checkpoint.find(run.folder), 1)


def test_a_run_that_began_with_other_weights_keeps_them(tmp_path: Path) -> None:
    other = new_run(tmp_path, "other", max_steps=3)
    other.train()
    config = TrainConfig(max_steps=8, batch_size=4, save_every=2, eval_windows=8)
    run = Run.new(tmp_path / "run", other.corpus, config, start=other.model)
    run.train()
    kept = sorted(path.name for path in (run.folder / "checkpoints").iterdir())
    assert kept == ["step_000000", "step_000006", "step_000008"]
    assert replay(run.folder, 3).same
    shutil.rmtree(run.folder / "checkpoints/step_000000")
    with pytest.raises(
        CheckpointError, match=r"no good checkpoint before step 3, .* weights of another model"
    ):
        replay(run.folder, 3)
