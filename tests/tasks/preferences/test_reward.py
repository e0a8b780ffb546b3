"""A reward model as an ordinary run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.runs import Run
from chainrule.tasks.registry import task_of_model
from chainrule.train.log import read
from tests.tasks.preferences.helpers import aligned, base


@pytest.mark.requirement("R-412")
def test_it_begins_with_the_body_of_the_language_model(tmp_path: Path) -> None:
    run, (start, _) = aligned(tmp_path, "run", "gpt-reward"), base()
    for name, array in start.state().items():
        np.testing.assert_array_equal(run.model.body.state()[name], array)


@pytest.mark.requirement("R-414")
@pytest.mark.parametrize("center", [0.0, 0.05])
def test_a_run_learns_who_is_preferred(tmp_path: Path, center: float) -> None:
    run = aligned(tmp_path, "run", "gpt-reward", max_steps=60, center=center, lr=3e-3)
    run.train()
    last = [record for record in read(run.files.log) if "validation" in record][-1]
    assert last["accuracy"] > 0.9 and 0 <= last["calibration_error"] < 0.4
    model: Any
    model, tokenizer = cr.load(run.folder)
    answers = task_of_model(model).answer(model, tokenizer, ["say 5: red", "say 5: red dog sun moon"])
    short, long = (answer["reward"] for answer in answers)
    assert short > long


@pytest.mark.requirement("R-411")
def test_the_language_model_stays_as_it_was(tmp_path: Path) -> None:
    start, tokenizer = base()
    before = start.parameters().data.copy()
    aligned(tmp_path, "first", "gpt-reward").train()
    run = Run.new(tmp_path / "run", tmp_path / "preferences.jsonl", None, "gpt-reward", tokenizer, start)
    run.train()
    np.testing.assert_array_equal(start.parameters().data, before)
    assert (run.model.body.wte.weight.data != start.wte.weight.data).any()


@pytest.mark.parametrize("settings", [{}, {"ema": 0.9}], ids=["plain", "ema"])
def test_resumed_it_ends_with_the_same_bits(tmp_path: Path, settings: dict[str, Any]) -> None:
    whole = aligned(tmp_path, "whole", "gpt-reward", center=0.05, **settings)
    whole.train()
    half = aligned(tmp_path, "half", "gpt-reward", center=0.05, **settings)
    half.save()
    while half.trainer.steps < 6:
        with cr.random.seeded(0):
            half.trainer.update(half.trainer.plan.lr(half.trainer.steps))
    half.save()
    again = Run.resume(half.folder)
    again.train()
    np.testing.assert_array_equal(again.model.parameters().data, whole.model.parameters().data)
