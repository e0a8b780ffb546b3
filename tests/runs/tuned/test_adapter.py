"""Runs that keep an adapter alone: what is saved, loaded, resumed, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, CheckpointError, ConfigError
from chainrule.generate import Decoder
from chainrule.io.opened import is_stored
from chainrule.models.tuning import BitFit, BottleneckAdapter, Full, LoRA, Method, Prefix, Prompt
from chainrule.models.tuning.parts import base_name
from chainrule.runs import Run
from chainrule.runs.load import open_model
from chainrule.runs.tuned import adapter
from chainrule.runs.tuned.base import weights_sha256
from chainrule.runs.warm_start import Start
from chainrule.train import TrainConfig
from tests.runs.helpers import corpus, losses, new_run
from tests.runs.survivors import new, outcome, write_data

METHODS: tuple[Method, ...] = (
    Full(), Full(freeze_layers=1), LoRA(rank=2), BottleneckAdapter(bottleneck=2), Prefix(length=2), Prompt(length=2),
    BitFit(),
)  # fmt: skip
IDS = np.arange(12)[None]
SETTINGS: dict[str, Any] = {
    "max_steps": 6, "batch_size": 4, "lr": 1e-2, "warmup": 1, "eval_every": 3, "save_every": 2, "eval_windows": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tuned")
    new_run(made, "base", max_steps=10).train()
    return made


def tune(folder: Path, name: str, method: Method, **settings: Any) -> Run:
    config = TrainConfig(**SETTINGS | settings)
    return Run.new(folder / name, folder / "text.txt", config, start=folder / "base", method=method)


@pytest.mark.requirement("R-397")
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name}{getattr(m, 'freeze_layers', '') or ''}")
def test_a_tuned_run_is_loaded_and_resumed(folder: Path, method: Method) -> None:
    name = f"{method.name}{getattr(method, 'freeze_layers', '') or ''}"
    base = cr.load(folder / "base")[0].state()
    more = {"eval_windows": 40} if isinstance(method, Prefix) else {}  # it changes little
    run = tune(folder, name, method, **more)
    first = run.trainer.evaluate()
    run.train()
    assert run.trainer.evaluate() < first
    loaded, _ = cr.load(folder / name / "checkpoints" / "step_000006")
    np.testing.assert_array_equal(loaded(IDS).numpy(), run.model.eval()(IDS).numpy())
    again = Run.resume(folder / name)
    assert again.finished and again.method == method
    files = {path.name for path in (folder / name / "checkpoints" / "step_000006").iterdir()}
    adapter = {"adapter_model.safetensors", "adapter_config.json"}
    assert files & {"model.safetensors", *adapter} == (adapter if method.alone else {"model.safetensors"})
    for key, value in cr.load(folder / "base")[0].state().items():
        np.testing.assert_array_equal(value, base[key])


@pytest.mark.parametrize(
    "method",
    [LoRA(rank=2, tokens=(3, 5)), *(method for method in METHODS if method.alone)],
    ids=lambda m: f"{m.name}{'-tokens' * bool(m.tokens)}",
)
def test_a_tuned_model_decodes_from_its_files(folder: Path, method: Method) -> None:
    """To the bit what the loaded one decodes, of the run and of its adapter alone, with no array in memory before."""
    name = f"{method.name}-decoded-{len(method.tokens)}"
    tune(folder, name, method, max_steps=2).train()
    alone = folder / f"{name}-alone"
    alone.mkdir()
    for file in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(folder / name / "checkpoints" / "step_000002" / file, alone)
    (loaded, _), ids = cr.load(folder / name), [1, 3, 5, 2]
    expected = Decoder(loaded).prefill(ids, every=True)  # type: ignore[arg-type]
    for path in (folder / name, alone):
        stored = open_model(path, to_decode=True).model
        assert is_stored(stored) and all(p.read is not None for _, p in stored.named_parameters())  # type: ignore[attr-defined]
        for weights in ("fp32", "int8"):
            found = Decoder(stored, weights).prefill(ids, every=True)  # type: ignore[arg-type]
            same = expected if weights == "fp32" else Decoder(loaded, weights).prefill(ids, every=True)  # type: ignore[arg-type]
            np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("method", [LoRA(rank=2, dropout=0.3), Prompt(length=2), Full(freeze_layers=1)])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(folder: Path, method: Method) -> None:
    whole, part = (f"{method.name}-{kind}" for kind in ("whole", "part"))
    tune(folder, whole, method).train()
    run = tune(folder, part, method)
    _stop_after(run, 5)
    assert Run.resume(folder / part).trainer.steps == 4  # what is after the last checkpoint is lost
    Run.resume(folder / part).train()
    assert outcome(folder / part) == outcome(folder / whole)


def _stop_after(run: Run, steps: int) -> None:
    """As if the process had been killed: no checkpoint, no word."""

    class Killed(BaseException):
        pass

    def update(lr: float) -> Any:
        if run.trainer.steps == steps:
            raise Killed
        return original(lr)

    original, run.trainer.update = run.trainer.update, update  # type: ignore[method-assign]
    with pytest.raises(Killed):
        run.train()


def test_running_means_of_adapters_are_resumed(folder: Path) -> None:
    tune(folder, "ema", LoRA(rank=2), ema=0.9).train()
    run = tune(folder, "ema-part", LoRA(rank=2), ema=0.9)
    _stop_after(run, 5)
    Run.resume(folder / "ema-part").train()
    assert outcome(folder / "ema-part") == outcome(folder / "ema")


def test_a_missing_or_changed_base_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "base", tmp_path / "base")
    shutil.copy(folder / "text.txt", tmp_path)
    tune(tmp_path, "tuned", LoRA(rank=2), max_steps=2).train()
    shutil.move(tmp_path / "base", tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=r"tuned: its base .*base is not there \(put it back"):
        cr.load(tmp_path / "tuned")
    run = Run.resume(tmp_path / "elsewhere")
    run.extend(12)
    run.train()
    shutil.move(tmp_path / "elsewhere", tmp_path / "base")
    with pytest.raises(
        CheckpointError, match=r"base has changed since the run began .SHA-256 of the weights"
    ):
        cr.load(tmp_path / "tuned")


def test_base_and_run_may_be_moved_together(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    shutil.copytree(folder / "base", tmp_path / "old" / "base")
    shutil.copy(folder / "text.txt", tmp_path / "old")
    run = tune(tmp_path / "old", "tuned", LoRA(rank=2), max_steps=2)
    run.train()
    shutil.move(tmp_path / "old", tmp_path / "new")
    model, _ = cr.load(tmp_path / "new" / "tuned")
    np.testing.assert_array_equal(model(IDS).numpy(), run.model.eval()(IDS).numpy())


def test_a_run_that_was_moved_with_its_base_and_resumed_finds_it_again(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    shutil.copytree(folder / "base", tmp_path / "old" / "base")
    shutil.copy(folder / "text.txt", tmp_path)  # the data stay where they were
    config = TrainConfig(**SETTINGS | {"max_steps": 2})
    start, out = tmp_path / "old" / "base", tmp_path / "old" / "tuned"
    Run.new(out, tmp_path / "text.txt", config, start=start, method=LoRA(rank=2)).train()
    shutil.move(tmp_path / "old", tmp_path / "new")
    run = Run.resume(tmp_path / "new" / "tuned")
    run.extend(4)
    run.train()
    shutil.move(tmp_path / "new", tmp_path / "newer")  # together again
    model, _ = cr.load(tmp_path / "newer" / "tuned" / "checkpoints" / "step_000004")
    np.testing.assert_array_equal(model(IDS).numpy(), run.model.eval()(IDS).numpy())


def test_the_config_names_the_base_and_its_hash(folder: Path) -> None:
    tune(folder, "named", LoRA(rank=2), max_steps=2).train()
    about = json.loads((folder / "named" / "checkpoints" / "step_000002" / "adapter_config.json").read_text())
    assert about["base_model_name_or_path"] == str((folder / "base").resolve())
    assert about["chainrule"]["base_sha256"] == weights_sha256(cr.load(folder / "base")[0])


def test_a_tuned_model_is_a_start_with_its_own_weights(folder: Path) -> None:
    run = tune(folder, "first", LoRA(rank=2))
    run.train()
    best, _ = cr.load(folder / "first")
    second = Run.new(folder / "second", folder / "text.txt", TrainConfig(**SETTINGS), start=folder / "first")
    np.testing.assert_allclose(second.model.eval()(IDS).numpy(), best(IDS).numpy(), rtol=0, atol=1e-5)
    tune(folder, "narrow", BottleneckAdapter(bottleneck=2), max_steps=2).train()
    with pytest.raises(ConfigError, match=r"no base for another training: h.0.attn is an Adapted"):
        Run.new(folder / "third", folder / "text.txt", TrainConfig(**SETTINGS), start=folder / "narrow")


@pytest.mark.parametrize("method", [LoRA(rank=2), BitFit()])
def test_a_tuned_model_is_tuned_again_loaded_and_resumed(folder: Path, method: Method) -> None:
    first, whole, part = (folder / f"{method.name}-{name}" for name in ("layer", "again", "again-part"))
    config = TrainConfig(**SETTINGS)
    tune(folder, first.name, LoRA(rank=2)).train()
    run = Run.new(whole, folder / "text.txt", config, start=first, method=method)
    run.train()
    model, _ = cr.load(whole / "checkpoints" / "step_000006")
    np.testing.assert_array_equal(model(IDS).numpy(), run.model.eval()(IDS).numpy())
    _stop_after(Run.new(part, folder / "text.txt", config, start=first, method=method), 5)
    Run.resume(part).train()
    assert outcome(part) == outcome(whole)


def test_what_is_wrong_with_a_base_is_said_as_it_is(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "base", tmp_path / "base")
    shutil.copy(folder / "text.txt", tmp_path)
    tune(tmp_path, "tuned", LoRA(rank=2), max_steps=2).train()
    shutil.rmtree(tmp_path / "base")
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text('{"model_type": "unknown"}')
    with pytest.raises(ChainruleError) as caught:
        cr.load(tmp_path / "tuned")
    assert "does not fit this version" not in str(caught.value)


def test_an_adapter_is_not_its_own_base(tmp_path: Path) -> None:
    for name, base in (("one", "two"), ("two", "one"), ("self", "self")):
        (tmp_path / name).mkdir()
        about = {"peft_type": "LORA", "base_model_name_or_path": str(tmp_path / base)}
        (tmp_path / name / "adapter_config.json").write_text(json.dumps(about))
    for name in ("one", "self"):
        with pytest.raises(
            CheckpointError, match=r"its base .* has it as a base \(must be a model of its own"
        ):
            cr.load(tmp_path / name)


def test_a_method_needs_a_base_that_is_found_again(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tune: method lora for a new model \(must have a model to tune"):
        Run.new(tmp_path / "a", corpus(tmp_path), method=LoRA())
    model, tokenizer = cr.load(folder / "base")
    with pytest.raises(ConfigError, match=r"tune: start is a GPT \(must be a path"):
        Run.new(tmp_path / "b", folder / "text.txt", None, "gpt", tokenizer, model, method=LoRA())


@pytest.mark.requirement("R-387")
def test_labels_and_texts_are_learned_by_tuning(folder: Path, tmp_path: Path) -> None:
    """A head for labels on a frozen BERT, and generation: both lower the loss of their task."""
    write_data(tmp_path)
    new(tmp_path, "bert", "body").train()
    words = (tmp_path / "text.txt").read_text(encoding="utf-8").split()[:200]
    rows = [{"text": f"{word} {kind}", "label": kind} for word in words for kind in ("def", "return")]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "kinds.jsonl").write_text(lines, encoding="utf-8")
    config = TrainConfig(
        **SETTINGS | {"max_steps": 30, "eval_every": 30, "batch_size": 8, "eval_windows": 64}
    )
    method = LoRA(rank=2)
    kind, data = "bert-classifier", tmp_path / "kinds.jsonl"
    labels = Run.new(tmp_path / "labels", data, config, kind, start=tmp_path / "body", method=method)
    texts = Run.new(tmp_path / "texts", folder / "text.txt", config, start=folder / "base", method=method)
    for run in (labels, texts):
        before = run.trainer.evaluate()
        run.train()
        assert run.trainer.evaluate() < before
        np.testing.assert_array_equal(
            [a.sum() for a in cr.load(run.folder)[0].arrays().values()],
            [a.sum() for a in Run.resume(run.folder).model.arrays().values()],
        )


@pytest.mark.requirement("R-386")
def test_instructions_are_learned_with_lora(tmp_path: Path) -> None:
    """The base's arrays keep their bits, the loss on the answers falls, and rows of new tokens are in the adapter."""
    write_data(tmp_path)
    new(tmp_path, "gpt", "base").train()
    base, tokenizer = cr.load(tmp_path / "base")
    before = base.state()
    config = TrainConfig(**SETTINGS | {"max_steps": 40, "eval_every": 40, "batch_size": 8, "lr": 3e-2})
    data, method = tmp_path / "instructions.jsonl", LoRA(rank=4, targets=("all",))
    run = Run.new(
        tmp_path / "tuned", data, config, start=tmp_path / "base", task="instruction", method=method
    )
    first = run.trainer.evaluate()
    run.train()
    assert run.trainer.evaluate() < first
    for name, value in cr.load(tmp_path / "base")[0].state().items():
        np.testing.assert_array_equal(value, before[name])
    tuned, chats = cr.load(tmp_path / "tuned")
    assert chats.vocab_size > tokenizer.vocab_size
    for name, value in tuned.state().items():
        plain = before.get(base_name(name))
        if plain is not None:
            np.testing.assert_array_equal(value[: len(plain)], plain, err_msg=name)


def test_other_data_than_those_of_the_base(folder: Path, tmp_path: Path) -> None:
    """Fine-tuning is training: the log has a line for each step."""
    run = tune(folder, "logged", LoRA(rank=2), max_steps=3)
    run.train()
    assert [step for step, _ in losses(run)] == [1, 2, 3]


def test_a_run_that_begins_with_a_tuned_one_learns_everything(folder: Path) -> None:
    """What was frozen there is not frozen here, and the run is resumed."""
    tune(folder, "bitfit-before", BitFit(), max_steps=2).train()
    run = Run.new(
        folder / "after", folder / "text.txt", TrainConfig(**SETTINGS), start=folder / "bitfit-before"
    )
    assert run.model.count(trainable=True) == run.model.count()
    _stop_after(run, 5)
    Run.resume(folder / "after").train()
    whole = Run.new(
        folder / "whole", folder / "text.txt", TrainConfig(**SETTINGS), start=folder / "bitfit-before"
    )
    whole.train()
    assert outcome(folder / "after") == outcome(folder / "whole")


def test_one_run_takes_what_was_opened(folder: Path) -> None:
    config, start = TrainConfig(**SETTINGS), Start.open(folder / "base")
    with pytest.raises(ChainruleError, match="nope"):  # nothing was taken
        Run.new(folder / "x", folder / "text.txt", config, start=start, tokenizer="nope", draft=True)
    Run.new(folder / "x", folder / "text.txt", config, start=start, method=LoRA(rank=2), draft=True)
    with pytest.raises(
        ConfigError, match=r"another run has begun with this Start of .*base \(open it again\)"
    ):
        Run.new(folder / "x", folder / "text.txt", config, start=start, draft=True)


def test_a_prefix_that_took_no_positions_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = folder / "old-prefix-alone"
    alone.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(adapter, "POSITIONS", {})  # as it was written before
        tune(folder, "old-prefix", Prefix(length=2), max_steps=2).train()
    for file in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(folder / "old-prefix" / "checkpoints" / "step_000002" / file, alone)
    for path in (folder / "old-prefix", alone):
        for to_decode in (False, True):
            with pytest.raises(CheckpointError, match=r"prefix took no positions \(tune it again\)"):
                open_model(path, to_decode=to_decode)
    about = json.loads((alone / "adapter_config.json").read_text())
    del about["chainrule"]  # as PEFT writes it, whose prefix always took the first positions
    (alone / "adapter_config.json").write_text(json.dumps(about))
    assert open_model(alone).model.context == 14


def test_a_resumed_run_has_the_weights_of_its_base_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, bases = tune(folder, "once", LoRA(rank=2), max_steps=2), []
    run.train()
    opened = adapter.open_base

    def open_base(*args: Any, **options: Any) -> Any:
        bases.append(opened(*args, **options))
        return bases[-1]

    monkeypatch.setattr(adapter, "open_base", open_base)
    loaded, (_, base, _) = cr.load(folder / "once")[0], bases[0]
    theirs = base.arrays()
    for name, param in loaded.named_parameters():
        if "lora_" not in name:
            assert param.array is theirs[base_name(name)], name
    np.testing.assert_array_equal(loaded.eval()(IDS).numpy(), run.model.eval()(IDS).numpy())
