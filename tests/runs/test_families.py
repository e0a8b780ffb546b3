"""Every family trains, stops, goes on bit for bit, is read back, and writes."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import CheckpointError, ConfigError
from chainrule.generate import generate
from chainrule.models import FAMILIES, describe, make, rebuild
from chainrule.runs import Run, checkpoint, load_language_model
from chainrule.runs.checkpoint import Checkpoint
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig
from tests.models.tiny import tiny
from tests.runs.helpers import corpus, losses, validations

SMALL = {
    "n_layer": 2,
    "n_head": 2,
    "n_kv_head": 1,
    "n_embd": 16,
    "n_hidden": 24,
    "block_size": 16,
    "dropout": 0.1,
}
SETTINGS: dict[str, Any] = {
    "max_steps": 16,
    "batch_size": 32,
    "warmup": 2,
    "eval_every": 8,
    "eval_windows": 32,
}


def new_run(folder: Path, family: str, name: str) -> Run:
    known = {f.name for f in fields(FAMILIES[family].config)}
    size: dict[str, Any] = {field: value for field, value in SMALL.items() if field in known}
    config = TrainConfig(**SETTINGS, save_every=5)
    return Run.new(folder / name, corpus(folder), config, family, **size)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_that_dies_goes_on_bit_for_bit(tmp_path: Path, family: str) -> None:
    whole, killed = new_run(tmp_path, family, "whole"), new_run(tmp_path, family, "killed")
    whole.train()
    update = killed.trainer.update

    def update_until_13(lr: float) -> tuple[float, float]:
        if killed.trainer.steps == 13:
            raise MemoryError
        return update(lr)

    killed.trainer.update = update_until_13  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        killed.train()
    resumed = Run.resume(killed.folder)
    assert resumed.trainer.steps == 10
    resumed.train()
    assert losses(resumed) == losses(whole)
    assert validations(resumed) == validations(whole)
    assert same(resumed.model.state(), whole.model.state())
    assert losses(whole)[-1][1] < losses(whole)[0][1] - 0.05  # and it learns

    model, tokenizer = load_language_model(whole.folder)
    assert type(model) is FAMILIES[family].model and describe(model)["model_type"] == family
    assert tokenizer == whole.tokenizer
    assert same(model.state(), whole.model.state())
    ids = tokenizer.encode("The value")
    assert generate(model, ids, 20, seed=1).tolist() == generate(whole.model, ids, 20, seed=1).tolist()


@pytest.mark.parametrize("family", ["rnn", "gru", "lstm"])
def test_a_recurrent_model_carries_its_state_from_step_to_step(tmp_path: Path, family: str) -> None:
    run = new_run(tmp_path, family, "run")
    trainer = run.trainer
    inputs, targets = trainer.batches.batch(0)
    with cr.random.step(0):
        _, expected = run.model.loss_from(None, inputs, targets)  # type: ignore[operator]
    trainer.update(0.0)
    assert trainer.step.state is not None
    for a, b in zip(trainer.step.state, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.shape[0] == 32 and np.isfinite(x).all() and x.shape == y.shape

    run.save()
    resumed = Run.resume(run.folder)
    for a, b in zip(resumed.trainer.step.state or (), trainer.step.state, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    forgotten = Run.resume(run.folder)
    forgotten.trainer.step.state = None
    assert resumed.trainer.update(0.0) == trainer.update(0.0) != forgotten.trainer.update(0.0)


def test_a_new_pass_over_the_text_starts_without_a_state(tmp_path: Path) -> None:
    run = new_run(tmp_path, "rnn", "run")
    trainer = run.trainer
    trainer.steps = trainer.batches.steps  # type: ignore[attr-defined]
    run.model.eval()
    trainer.step.state = tuple((np.full((32, 24), 0.9, np.float32),) for _ in range(2))
    with_state, _ = trainer.update(0.0)
    trainer.steps, trainer.step.state = trainer.batches.steps, None  # type: ignore[attr-defined]
    assert trainer.update(0.0)[0] == with_state


def test_a_tokenizer_of_ones_own(tmp_path: Path) -> None:
    text = corpus(tmp_path)
    tokenizer = CharTokenizer("".join(sorted(set(text.text), reverse=True)))
    run = Run.new(tmp_path / "run", text, TrainConfig(**SETTINGS), "rnn", tokenizer, n_hidden=8)
    run.save()
    assert load_language_model(run.folder)[1] == tokenizer != CharTokenizer.train(text.text)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_cannot_ask_for_more_memory_than_it_fills(tmp_path: Path, family: str) -> None:
    model = tiny(family)
    saved = Checkpoint(
        model=model.state(),
        optimizer={},
        config=describe(model),
        tokenizer=CharTokenizer("abcdefghijk").to_dict(),
        training={"step": 1},
    )
    load_language_model(checkpoint.save(tmp_path, saved))
    sizes = [name for name, value in saved.config.items() if type(value) is int]
    free = {"n_head", "n_kv_head"}  # they share the width, and take no memory
    if family in ("llama", "rnn", "gru", "lstm"):
        free.add("block_size")  # no weights for positions
    for name in set(sizes) - free:
        changed = replace(saved, config=saved.config | {name: 24 * 10**10})
        path = checkpoint.save(tmp_path, changed)
        with pytest.raises(CheckpointError):  # modules that only a refusal needs are loaded
            load_language_model(path)
        tracemalloc.start()
        rule = f"{name} is 240000000000 \\(must be at most \\S+, the (number of values in the file|longest context)"
        with pytest.raises(CheckpointError, match=rule) as error:
            load_language_model(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 and "\n" not in str(error.value)
        tracemalloc.stop()


@pytest.mark.parametrize("size", ["many", [1], None, 1.5, math.nan, math.inf, 10**400])
def test_a_checkpoint_with_a_size_that_is_none_is_refused(tmp_path: Path, size: Any) -> None:
    model = tiny("rnn")
    config = describe(model) | {"n_hidden": size, "n_embd": 1.5}
    saved = Checkpoint(model.state(), {}, config, CharTokenizer("abcdefghijk").to_dict(), {"step": 1})
    with pytest.raises(CheckpointError):
        load_language_model(checkpoint.save(tmp_path, saved))


def test_names_of_families() -> None:
    with pytest.raises(ConfigError, match=r"model 'lstn': no such family .* did you mean lstm\?"):
        make("lstn")
    model = make("gru", n_hidden=8, vocab_size=7)
    assert rebuild(describe(model)).config == model.config

    class Other(type(model)):  # type: ignore[misc]
        pass

    with pytest.raises(ConfigError, match="model Other: no such family"):
        describe(Other(model.config))
