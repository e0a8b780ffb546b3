"""A reward model as an ordinary run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import DataError
from chainrule.models import Reward
from chainrule.runs import Run
from chainrule.tasks.preferences.reward import RewardTask
from chainrule.tasks.registry import task_of_model
from chainrule.train.log import read
from tests.tasks.preferences.helpers import aligned, base, preferences


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


def test_centered_rewards_are_held_near_0_by_the_last_bias_and_evaluated_in_nats(tmp_path: Path) -> None:
    run = aligned(tmp_path, "run", "gpt-reward", center=0.5)
    run.model.body.ln_f.bias.data[:] = 3 * np.sign(run.model.score.weight.data[0])  # all rewards far from 0
    before = run.model.body.ln_f.bias.data.copy()
    inputs, targets = run.trainer.eval_batches[0]
    plain = run.model.eval().loss(inputs, targets).item()
    assert run.trainer.model.eval().loss(inputs, targets).item() == pytest.approx(plain)  # nats per pair
    assert run.trainer.model.train().loss(inputs, targets).item() > plain + 0.1
    run.train()
    assert (run.model.body.ln_f.bias.data != before).any()


def trimming() -> Any:
    """A tokenizer to which texts may be the same that differ: its template takes spaces away."""
    _, tokenizer = base()
    trimmed = "{% for m in messages %}{{ m['content'] | trim }}{% endfor %}"
    tokenizer.conventions = replace(tokenizer.conventions, chat_template=trimmed)
    return tokenizer


def test_answers_that_are_the_same_tokens_are_ties(tmp_path: Path) -> None:
    tokenizer = trimming()
    path = preferences(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"prompt": "say 1:", "chosen": "red", "rejected": "red "}\n')
    corpus = cr.data.load_preferences(path)
    model = Reward.on(base()[0])
    with pytest.raises(
        DataError, match=r"line 121: chosen and rejected are the same tokens \(must differ; .*--skip-ties"
    ):
        RewardTask.of(corpus, tokenizer).fitted(model)
    fitted = RewardTask.of(corpus, tokenizer, skip_ties=True).fitted(model)
    assert len(fitted.training) + len(fitted.validation) == 120


def test_an_answer_without_tokens_is_called_one(tmp_path: Path) -> None:
    path = preferences(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"prompt": "say 1:", "chosen": "red", "rejected": " "}\n')
    with pytest.raises(DataError, match=r"line 121: 'rejected' has no tokens \(must have at least one"):
        RewardTask.of(cr.data.load_preferences(path), trimming()).fitted(Reward.on(base()[0]))


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
