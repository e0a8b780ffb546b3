"""DPO as an ordinary run: its own start is the reference, before and after a resume."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.align import DPO
from chainrule.errors import ConfigError, DataError
from chainrule.runs import Run
from chainrule.train.log import read
from tests.tasks.preferences.helpers import aligned, base, counted_checkpoints, preferences


@pytest.mark.requirement("R-421")
@pytest.mark.parametrize(
    ("options", "loss"),
    [
        ({}, math.log(2)),
        ({"loss": "robust", "noise": 0.2}, math.log(2)),
        ({"loss": "ipo", "beta": 0.5}, 1.0),
        ({"loss": "hinge"}, 1.0),
    ],
)
def test_at_step_0_the_policy_is_its_reference(tmp_path: Path, options: dict[str, Any], loss: float) -> None:
    run = aligned(tmp_path, "run", task="dpo", **options)
    assert run.trainer.evaluate() == pytest.approx(loss, rel=1e-5)
    inputs, targets = run.trainer.batches.batch(0)
    assert run.trainer.model.loss(inputs, targets).item() == pytest.approx(loss, rel=1e-5)


@pytest.mark.requirement("R-421")
def test_the_first_step_of_a_policy_with_dropout_begins_at_ln_2_too(tmp_path: Path) -> None:
    run = aligned(tmp_path, "run", task="dpo", dropout=0.3)
    loss, _ = run.trainer.update(1e-3)
    assert loss == pytest.approx(math.log(2), rel=1e-5)


def test_recomputed_blocks_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_checkpoints(monkeypatch)
    found = []
    for recompute in (False, True):
        run = aligned(tmp_path, f"run-{recompute}", task="dpo", recompute=recompute, max_steps=3)
        run.train()
        assert bool(calls) is recompute
        found.append(run.model.parameters().data)
    np.testing.assert_array_equal(*found)


@pytest.mark.requirement("R-421")
def test_a_run_learns_and_logs_implicit_rewards(tmp_path: Path) -> None:
    run = aligned(tmp_path, "run", task="dpo", max_steps=40, lr=1e-2)
    result = run.train()
    assert result.validation < 0.3
    last = [record for record in read(run.files.log) if "validation" in record][-1]
    assert last["rewards/accuracies"] == 1
    assert last["rewards/margins"] == pytest.approx(last["rewards/chosen"] - last["rewards/rejected"])
    assert run.trainer.best_so_far.score is None  # the loss says which is best
    assert type(cr.load(run.folder)[0]) is cr.models.GPT


@pytest.mark.requirement("R-411")
def test_the_model_it_began_with_stays_as_it_was(tmp_path: Path) -> None:
    start, tokenizer = base()
    before = start.parameters().data.copy()
    run = Run.new(
        tmp_path / "run", preferences(tmp_path), None, "gpt", tokenizer, start, task="dpo", beta=0.3
    )
    run.train()
    np.testing.assert_array_equal(start.parameters().data, before)
    assert (run.model.parameters().data != before).any()


@pytest.mark.parametrize("settings", [{}, {"ema": 0.9}, {"precision": "bf16"}], ids=["plain", "ema", "bf16"])
def test_resumed_it_has_the_reference_of_its_own_start(tmp_path: Path, settings: dict[str, Any]) -> None:
    whole = aligned(tmp_path, "whole", task="dpo", beta=0.3, **settings)
    whole.train()
    half = aligned(tmp_path, "half", task="dpo", beta=0.3, **settings)
    half.save()
    while half.trainer.steps < 6:
        with cr.random.seeded(0):
            half.trainer.update(half.trainer.plan.lr(half.trainer.steps))
    half.save()
    again = Run.resume(half.folder)
    learner = again.trainer.model
    assert isinstance(learner, DPO) and learner.preference_loss.beta == 0.3
    assert again.task.training == half.task.training  # with what the reference says
    again.train()
    np.testing.assert_array_equal(again.model.parameters().data, whole.model.parameters().data)


def test_pairs_beyond_the_context_are_left_out_and_counted(tmp_path: Path) -> None:
    path = preferences(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"prompt": "say 1: ", "chosen": "red", "rejected": "' + "dog " * 20 + '"}\n')
    run = aligned(tmp_path, "run", task="dpo")
    assert run.task.amount().endswith("; 1 are longer than the context and left out")
    assert len(run.task.training) + len(run.task.validation) == 120


def test_what_is_refused(tmp_path: Path) -> None:
    path = preferences(tmp_path)
    _, tokenizer = base()
    with pytest.raises(ConfigError, match=r"dpo: a new model .must begin with one that has learned"):
        Run.new(tmp_path / "a", path, None, "gpt", tokenizer, task="dpo")
    with pytest.raises(ConfigError, match=r"robust: noise is 0.7"):
        aligned(tmp_path, "b", task="dpo", loss="robust", noise=0.7)
    with pytest.raises(ConfigError, match="noise"):
        aligned(tmp_path, "c", task="dpo", loss="ipo", noise=0.1)
    with pytest.raises(ConfigError, match=r"preference loss 'ipoo': not known .*did you mean ipo"):
        aligned(tmp_path, "d", task="dpo", loss="ipoo")
    path.write_text('{"prompt": "say: ", "chosen": "ZZ", "rejected": "red"}\n' * 3, encoding="utf-8")
    with pytest.raises(
        DataError, match=r"pairs of \d+ prompts? \(must be enough prompts to hold back one in ten"
    ):
        aligned(tmp_path, "e", task="dpo")
