"""Checkpoints: whole or not there, checked when read, the last good one always left."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chainrule.errors import ChainruleWarning, CheckpointError
from chainrule.runs import checkpoint
from chainrule.runs.checkpoint import FILES, Checkpoint


def make(step: int = 7) -> Checkpoint:
    rng = np.random.default_rng(step)
    return Checkpoint(
        model={"w": rng.normal(size=(3, 4)).astype(np.float32).T, "b": rng.normal(size=4)},  # w is strided
        optimizer={"steps": np.array(step), "m.w": rng.normal(size=(4, 3))},
        config={"n_layer": 2},
        tokenizer={"type": "char", "characters": "a\N{GRINNING FACE}\ud800"},
        training={"step": step, "loss": 0.1 + 0.2},
        carried={"0.0": rng.normal(size=(2, 3))},
        tokenizer_config={"model_max_length": 8},
        generation_config={"eos_token_id": None},
        trained={"w": rng.normal(size=(4, 3))},
    )


def test_what_is_saved_comes_back_bit_for_bit(tmp_path: Path) -> None:
    saved = make()
    path = checkpoint.save(tmp_path, saved)
    assert path == tmp_path / "checkpoints" / "step_000007"
    for loaded in (checkpoint.load(tmp_path), checkpoint.load(path)):
        for name in ("model", "optimizer", "carried", "trained"):
            before, after = getattr(saved, name), getattr(loaded, name)
            assert before.keys() == after.keys()
            for key in before:
                assert before[key].dtype == after[key].dtype and np.array_equal(before[key], after[key])
                assert before[key].shape == after[key].shape
        assert (loaded.config, loaded.tokenizer, loaded.training) == (
            saved.config,
            saved.tokenizer,
            saved.training,
        )


def test_memory_is_needed_for_one_file_at_a_time(tmp_path: Path) -> None:
    arrays = {"w": np.zeros(2_000_000, np.float32)}
    large = replace(make(), model=arrays, optimizer=arrays, carried=arrays, trained=arrays)
    tracemalloc.start()
    checkpoint.save(tmp_path, large)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.5 * arrays["w"].nbytes


def test_what_most_models_do_not_have_needs_no_file(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, replace(make(), carried={}, trained={}))
    assert not (path / "carried.safetensors").exists() and not (path / "trained.safetensors").exists()
    assert checkpoint.load(path).carried == checkpoint.load(path).trained == {}


def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path: Path) -> None:
    for step in (1, 2):
        checkpoint.save(tmp_path, make(step))
    newest = tmp_path / "checkpoints" / "step_000002"
    (newest / "optimizer.safetensors").write_bytes(b"rubbish")
    with pytest.warns(
        ChainruleWarning, match=r"optimizer.safetensors: is damaged.*taking step_000001 instead"
    ):
        assert checkpoint.load(tmp_path).step == 1
    with pytest.raises(CheckpointError, match="is damaged"):  # asked for by name
        checkpoint.load(newest)
    (tmp_path / "checkpoints" / "step_000001" / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match=r"optimizer.*no good one before it"):
        checkpoint.load(tmp_path)


def test_the_best_checkpoint_is_kept_beside_the_newest_two(tmp_path: Path) -> None:
    for step in range(1, 6):
        checkpoint.save(tmp_path, make(step), keep={2})
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "step_000002",
        "step_000004",
        "step_000005",
    ]


def adapter() -> Checkpoint:
    arrays, about = {"h.0.lora_A": np.ones((2, 3), np.float32)}, {"base_model_name_or_path": "base"}
    return replace(make(), model={}, adapter_model=arrays, adapter_config=about)


def test_an_adapter_stands_in_place_of_the_model(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, adapter())
    assert {file.name for file in path.iterdir()} == {*FILES.values(), "manifest.json"} - {
        "model.safetensors"
    }
    assert checkpoint.load(path).adapter_config == {"base_model_name_or_path": "base"}
    assert not checkpoint.load(path).model


@pytest.mark.parametrize("file", [*FILES.values(), "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove"])
def test_every_damage_is_noticed(tmp_path: Path, file: str, damage: str) -> None:
    path = checkpoint.save(tmp_path, adapter() if file.startswith("adapter") else make()) / file
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes({"flip": content, "cut": content[:middle], "empty": bytearray()}[damage])
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(tmp_path / "checkpoints" / "step_000007")
    assert "step_000007" in str(error.value)


def test_a_manifest_cannot_point_elsewhere(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, make()) / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["../../secret"] = manifest["files"]["config.json"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="must list model"):
        checkpoint.load(tmp_path)


def test_a_format_of_the_future_is_refused(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, make()) / "manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(CheckpointError, match=r"format 2 \(must be 1\)"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize("file", ["config.json", "manifest.json"])
def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path, file: str) -> None:
    path = checkpoint.save(tmp_path, make())
    deep = b"[" * 200_000
    (path / file).write_bytes(deep)
    if file != "manifest.json":
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["files"][file] = {"bytes": len(deep), "sha256": hashlib.sha256(deep).hexdigest()}
        (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=f"{file}: ") as error:
        checkpoint.load(path)
    assert "\n" not in str(error.value)


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 999_999, 1_000_000):
        checkpoint.save(tmp_path, make(step))
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step_1000000", "step_999999"]
    assert checkpoint.load(tmp_path).step == 1_000_000


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, make())
    again = Checkpoint(**vars(make()) | {"config": {"n_layer": 3}})
    checkpoint.save(tmp_path, again)
    assert checkpoint.load(tmp_path).config == {"n_layer": 3}
    assert os.listdir(tmp_path / "checkpoints") == ["step_000007"]


@pytest.mark.parametrize("moment", ["write", "rename"])
def test_a_full_disk_leaves_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    checkpoint.save(tmp_path, make(1))

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    if moment == "write":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(CheckpointError, match=r"step_000002: cannot be written \(No space left on device"):
        checkpoint.save(tmp_path, make(2))
    assert os.listdir(tmp_path / "checkpoints") == ["step_000001"]
    assert checkpoint.load(tmp_path).step == 1


def test_a_crash_while_writing_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, make(1))
    (tmp_path / "checkpoints" / ".step_000002.partial").mkdir()
    (tmp_path / "checkpoints" / ".step_000002.partial" / "model.safetensors").write_bytes(b"half")
    assert checkpoint.load(tmp_path).step == 1
    checkpoint.save(tmp_path, make(2))
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step_000001", "step_000002"]


def test_a_step_that_cannot_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save(tmp_path, make())
    rename = Path.rename

    def fail_for_the_new_one(path: Path, target: Path) -> Path:
        if path.suffix == ".partial":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(CheckpointError, match=r"step_000007: cannot be written \(Input/output error"):
        checkpoint.save(tmp_path, replace(make(), config={"n_layer": 3}))
    assert os.listdir(tmp_path / "checkpoints") == ["step_000007"]
    assert checkpoint.load(tmp_path).config == {"n_layer": 2}


@pytest.mark.parametrize("then", ["load", "save"])
def test_a_crash_between_the_two_renames_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    checkpoint.save(tmp_path, make())
    rename = Path.rename

    class Death(BaseException):
        pass

    def die_for_the_new_one(path: Path, target: Path) -> Path:
        if path.suffix == ".partial":
            raise Death
        return rename(path, target)

    with monkeypatch.context() as patch, pytest.raises(Death):
        patch.setattr(Path, "rename", die_for_the_new_one)
        checkpoint.save(tmp_path, replace(make(), config={"n_layer": 3}))
    assert not (tmp_path / "checkpoints" / "step_000007").exists()
    if then == "save":
        checkpoint.save(tmp_path, make(8))
        assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step_000007", "step_000008"]
        checkpoint.load(tmp_path / "checkpoints" / "step_000007")
    else:
        assert checkpoint.load(tmp_path).config == {"n_layer": 2}


def test_a_checkpoint_that_cannot_be_taken_back_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint.save(tmp_path, make())
    path.rename(path.with_name(".step_000007.old"))

    def fail(*args: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(CheckpointError, match=r"checkpoints: cannot be mended \(Read-only file system\)"):
        checkpoint.load(tmp_path)
