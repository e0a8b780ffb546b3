"""PPO as an ordinary run: prompts, a reward, and the start as the reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, CheckpointError, ConfigError, DataError, Failure
from chainrule.runs import Run
from chainrule.train.log import read
from chainrule.train.policy import PolicyStep
from tests.tasks.preferences.helpers import aligned, base, counted_checkpoints, preferences

SHORT: dict[str, Any] = {"max_new_tokens": 6, "lr": 3e-3, "max_steps": 6, "eval_every": 3, "save_every": 3}


def many_e(prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
    assert all(prompt.startswith("say ") for prompt in prompts)
    return [float(answer.count("e")) for answer in answers]


def weights(run: Run) -> Any:
    return run.trainer.model.parameters().data.copy()


@pytest.mark.requirement("R-420", "R-417")
def test_the_first_epoch_of_the_first_step(tmp_path: Path) -> None:
    run = aligned(tmp_path, "run", task="ppo", reward_function=many_e, epochs=1, **SHORT)
    run.train()
    first = next(record for record in read(run.files.log) if "val/ratio" in record)
    assert first["val/ratio"] == pytest.approx(1, abs=1e-6)
    assert (first["policy/clipfrac"], first["objective/kl"], first["policy/approxkl"]) == (0, 0, 0)
    assert {
        "time/rollout",
        "time/scoring",
        "time/update",
        "objective/rlhf_reward",
        "loss/value",
    } <= first.keys()


@pytest.mark.requirement("R-420")
@pytest.mark.parametrize("settings", [{"dropout": 0.3}, {"temperature": 2.0}], ids=["dropout", "temperature"])
@pytest.mark.parametrize("method", ["ppo", "grpo"])
def test_ratios_begin_at_1(tmp_path: Path, method: str, settings: dict[str, Any]) -> None:
    options = SHORT | {"max_steps": 1, "epochs": 1, "algorithm": method} | settings
    aligned(tmp_path, "run", task="ppo", reward_function=many_e, **options).train()
    first = next(record for record in read(tmp_path / "run" / "log.jsonl") if "val/ratio" in record)
    assert first["val/ratio"] == pytest.approx(1, abs=1e-6)
    assert first["val/ratio_var"] < 1e-9 and first["objective/kl"] == 0


def test_recomputed_blocks_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_checkpoints(monkeypatch)
    found = []
    for recompute in (False, True):
        options = SHORT | {"max_steps": 2, "recompute": recompute}
        run = aligned(tmp_path, f"run-{recompute}", task="ppo", reward_function=many_e, **options)
        run.train()
        assert bool(calls) is recompute
        found.append(weights(run))
    np.testing.assert_array_equal(*found)


def test_a_step_that_is_not_finite_is_a_failure(tmp_path: Path) -> None:
    run = aligned(tmp_path, "run", task="ppo", reward_function=many_e, **SHORT)
    run.trainer.step.method.actor.value.bias.data[:] = np.inf  # type: ignore[attr-defined]
    with pytest.raises(Failure, match=r"policy: loss .* at step 1 \(must be finite\): try a smaller lr"):
        run.train()


@pytest.mark.parametrize("method", ["ppo", "reinforce", "grpo"])
def test_the_reward_rises(tmp_path: Path, method: str) -> None:
    settings: dict[str, Any] = SHORT | {"max_steps": 30, "eval_every": 30, "lr": 1e-2, "batch_size": 16}
    group = {} if method == "ppo" else {"group": 4}
    run = aligned(tmp_path, "run", task="ppo", reward_function=many_e, algorithm=method, **settings, **group)
    before = run.trainer.evaluate()
    after = run.train().validation
    assert after < before - 0.5  # minus the objective


@pytest.mark.requirement("R-411")
def test_a_reward_model_and_the_reference_stay_as_they_were(tmp_path: Path) -> None:
    aligned(tmp_path, "reward", "gpt-reward").train()
    judge, (start, _) = cr.load(tmp_path / "reward")[0], base()
    run = aligned(tmp_path, "run", task="ppo", reward=tmp_path / "reward", **SHORT)
    run.train()
    task: Any = run.task
    np.testing.assert_array_equal(task.reward.model.parameters().data, judge.parameters().data)
    np.testing.assert_array_equal(task.reference.parameters().data, start.parameters().data)
    assert (run.model.parameters().data != start.parameters().data).any()
    assert Run.resume(run.folder).finished


@pytest.mark.parametrize("settings", [{}, {"target_kl": 0.05, "horizon": 100}, {"algorithm": "grpo"}])
def test_resumed_it_ends_with_the_same_bits(tmp_path: Path, settings: dict[str, Any]) -> None:
    """With the value head, the moments of the optimizer, and a β that adapts."""
    given: dict[str, Any] = SHORT | settings | {"reward_function": many_e}
    whole = aligned(tmp_path, "whole", task="ppo", **given)
    whole.train()
    half = aligned(tmp_path, "half", task="ppo", **given)
    half.save()
    with cr.random.seeded(0):
        while half.trainer.steps < 4:
            half.trainer.update(half.trainer.plan.lr(half.trainer.steps))
    half.save()
    again = Run.resume(half.folder, reward_function=many_e)
    again.train()
    np.testing.assert_array_equal(weights(again), weights(whole))
    steps = whole.trainer.step, again.trainer.step
    assert isinstance(steps[0], PolicyStep) and isinstance(steps[1], PolicyStep)
    assert steps[0].method.beta == steps[1].method.beta != (0.05 if "target_kl" in settings else None)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo: no reward .must be one of both"):
        aligned(tmp_path, "a", task="ppo")
    with pytest.raises(ConfigError, match=r"grpo: lam is 0.9 \(must be left out: grpo does not use it"):
        aligned(tmp_path, "b", task="ppo", reward_function=many_e, algorithm="grpo", lam=0.9)
    with pytest.raises(ConfigError, match=r"algorithm 'gpro': not known \(must be .*did you mean grpo"):
        aligned(tmp_path, "c", task="ppo", reward_function=many_e, algorithm="gpro")
    with pytest.raises(DataError, match=r"prompts are too long .must leave 60 tokens of the context of 48"):
        aligned(tmp_path, "d", task="ppo", reward_function=many_e, max_new_tokens=60)
    with pytest.raises(ConfigError, match=r"ppo: ema is 0.9 \(must be 0.0"):
        aligned(tmp_path, "e", task="ppo", reward_function=many_e, ema=0.9)
    with pytest.raises(ConfigError, match=r"ppo: on_nan is 'skip' \(must be stop"):
        aligned(tmp_path, "e", task="ppo", reward_function=many_e, on_nan="skip")
    with pytest.raises(ConfigError, match=r"ppo: watch_every is 3 \(must be 0"):
        aligned(tmp_path, "e", task="ppo", reward_function=many_e, watch_every=3)
    for name in ("epochs", "minibatches"):
        with pytest.raises(ConfigError, match=rf"reinforce: {name} is 2 \(must be 1"):
            aligned(tmp_path, "e", task="ppo", reward_function=many_e, algorithm="reinforce", **{name: 2})
    model, tokenizer = base()
    cr.io.save_pretrained(model, tokenizer, tmp_path / "base")
    with pytest.raises(ConfigError, match=r"base holds a GPT \(must be a reward model"):
        aligned(tmp_path, "f", task="ppo", reward=tmp_path / "base")


def test_a_function_is_never_found_by_the_name_in_a_file(tmp_path: Path) -> None:
    run = aligned(tmp_path, "run", task="ppo", reward_function=many_e, **SHORT)
    run.train()
    with pytest.raises(ConfigError, match=r"uses a function of yours, .*test_policy:many_e \(give it again"):
        Run.resume(run.folder)


def test_moved_with_its_reward_model_a_run_goes_on(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    preferences(tmp_path)
    aligned(old, "reward", "gpt-reward", data=tmp_path / "preferences.jsonl", max_steps=2).train()
    run = aligned(old, "run", task="ppo", data=tmp_path / "preferences.jsonl", reward=old / "reward", **SHORT)
    run.train()
    old.rename(new)
    for steps in (7, 8):  # the second time the run itself says where it has found it
        again = Run.resume(new / "run")
        assert again.task.facts()["reward"]["path"] == str(new / "reward")
        again.extend(steps)
        again.train()
    (new / "reward").rename(new / "elsewhere")
    with pytest.raises(ChainruleError, match=r"new/reward"):
        Run.resume(new / "run")


def test_a_reward_model_that_has_changed_is_noticed(tmp_path: Path) -> None:
    aligned(tmp_path, "reward", "gpt-reward", max_steps=2).train()
    run = aligned(tmp_path, "run", task="ppo", reward=tmp_path / "reward", **SHORT)
    run.train()
    longer = Run.resume(tmp_path / "reward")
    longer.extend(8)
    longer.train()
    with pytest.raises(CheckpointError, match="reward has changed since the run began"):
        Run.resume(run.folder)
