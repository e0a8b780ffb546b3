"""What can go wrong with a disk or a process: one clear error, and the last good checkpoint is still there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.cli import main
from chainrule.data import Document, Shards, Split, build
from chainrule.errors import ChainruleError, ChainruleWarning, CheckpointError, ConfigError, Failure
from chainrule.runs import Run, checkpoint, load_language_model
from chainrule.runs.records import environment
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig, Trainer
from chainrule.train.log import Log, read
from tests.runs.helpers import SIZE, corpus, losses, new_run, validations
from tests.runs.survivors import outcome

SMALL = {"max_steps": 6, "save_every": 2, "eval_every": 3, "eval_windows": 8}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with everything a checkpoint can have, and two checkpoints."""
    run = new_run(tmp_path_factory.mktemp("damage"), **SMALL, ema=0.9, patience=5)
    run.train()
    assert len(list((run.folder / "checkpoints").iterdir())) >= 2
    return run


def loaded(folder: Path) -> tuple[int, list[str]]:
    """The step of the checkpoint that is taken, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        step = checkpoint.load(folder).step
    return step, [str(w.message) for w in seen if issubclass(w.category, ChainruleWarning)]


# -- damaged files ----------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_bit_flipped_anywhere_or_a_file_cut_anywhere_costs_one_checkpoint(finished: Run, data: Any) -> None:
    folder = finished.folder
    newest = checkpoint.find(folder)
    path = data.draw(st.sampled_from(sorted(newest.iterdir())))
    before = path.read_bytes()
    place = data.draw(st.integers(0, len(before) - 1))
    flipped = (
        before[:place] + bytes([before[place] ^ 1 << data.draw(st.integers(0, 7))]) + before[place + 1 :]
    )
    path.write_bytes(data.draw(st.sampled_from([flipped, before[:place]])))
    try:
        step, said = loaded(folder)
        harmless = path.name == "manifest.json" and step == 6  # white space, or the case of a digit
        assert harmless or (step == 4 and len(said) == 1)
        assert harmless or (
            f"step_000006{os.sep}" in said[0] and said[0].endswith("taking step_000004 instead")
        )
    finally:
        path.write_bytes(before)


def test_a_file_of_another_run_is_not_taken_for_ones_own(finished: Run, tmp_path: Path) -> None:
    other = new_run(tmp_path, **SMALL | {"lr": 2e-2})
    other.train()
    mixed = tmp_path / "mixed"
    for file in ("tokenizer.json", "config.json", "training.json", "model.safetensors"):
        shutil.copytree(finished.folder, mixed)
        path = checkpoint.find(mixed) / file
        content = (checkpoint.find(other.folder) / file).read_bytes()
        path.write_bytes(content if content != path.read_bytes() else content + b" ")
        step, said = loaded(mixed)
        assert step == 4 and len(said) == 1 and file in said[0]
        with pytest.raises(CheckpointError, match=f"{file}: is damaged"):
            load_language_model(checkpoint.find(mixed))
        shutil.rmtree(mixed)


def test_a_damaged_log_loses_the_damaged_lines_only(tmp_path: Path) -> None:
    run = new_run(tmp_path, **SMALL)
    run.train()
    lines = run.files.log.read_bytes().split(b"\n")
    lines[1], lines[3] = b"\xff\xfe\x00", b"[" * 100_000
    run.files.log.write_bytes(b"\n".join(lines) + b'\n"text"\n{"step": "six"}\n{"step": 6, "lo')
    kept = [record["step"] for record in read(run.files.log)]
    assert kept == [1, 3, 4, 5, 6, 6]  # without 2 and the first evaluation
    assert Run.resume(run.folder).trainer.steps == 6


def test_a_record_with_another_key_or_type_is_left_out_and_the_rest_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = new_run(tmp_path, **SMALL)
    run.train()
    whole = run.files.log.read_text(encoding="utf-8")
    shutil.copytree(run.folder, "copy")
    changes = [
        ('"loss"', '"lxss"'),
        ('"norm"', '"nxrm"'),
        ('"step": 3', '"step": true'),
        ('"loss": ', '"loss": [], "x": '),
    ]
    changes += [
        ('"validation": ', '"validation": "x", "y": '),
        ('"seconds": ', '"seconds": {}, "z": '),
        ('"lr": ', '"lr": 1e999, "r": '),
    ]
    for old, new in changes:
        run.files.log.write_text(whole.replace(old, new), encoding="utf-8")
        again = Run.resume(run.folder)
        again.extend(again.trainer.steps + 1)
        again.train()
        for words in (["doctor", "run"], ["runs", "list", "."], ["runs", "compare", "run", "copy"]):
            main(words)
            assert "Traceback" not in capsys.readouterr().err
    run.files.log.write_text(
        '{"step": 1, "finding": {"code": 3}}\n{"step": 2, "finding": 3}\n', encoding="utf-8"
    )
    main(["doctor", "run"])


def test_shards_that_changed_after_the_run_began_are_refused(tmp_path: Path) -> None:
    documents = [Document(f"text {number} " * 9, "x") for number in range(40)]
    tokenizer = CharTokenizer.train("".join(document.text for document in documents) + "\n")
    build(tmp_path / "shards", documents, tokenizer, split=Split(validation=0.3, test=0))
    data = Shards(tmp_path / "shards")
    run = Run.new(tmp_path / "run", data, TrainConfig(max_steps=1, batch_size=2), **SIZE)
    run.train()
    path = tmp_path / "shards/train.npy"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ChainruleError, match=r"train\.npy: is damaged"):
        Run.resume(run.folder)


def list_anew(file: Path, content: bytes) -> None:
    """Exchange a file of a checkpoint, and its hash in the manifest."""
    file.write_bytes(content)
    manifest = json.loads((file.parent / "manifest.json").read_bytes())
    manifest["files"][file.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (file.parent / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_tokenizer_that_was_exchanged_and_listed_anew_is_refused(finished: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    for path in (folder / "checkpoints").iterdir():
        file = path / "tokenizer.json"
        content = file.read_bytes().replace(b'"a"', b'"~~"').replace(b'"b"', b'"a"').replace(b'"~~"', b'"b"')
        assert content != file.read_bytes()
        list_anew(file, content)
    with pytest.raises(CheckpointError, match="is not the tokenizer of this run"):
        checkpoint.load(folder)


def test_a_damaged_record_of_the_machine_is_begun_anew(tmp_path: Path) -> None:
    run = new_run(tmp_path, **SMALL)
    run.train()
    for rubbish in (
        b"",
        b"[]",
        b'{"stretches": 7}',
        b'{"stretches": [3]}',
        b"\xff",
        b'{"family": [], "per_nat": 3, "data": 1}',
    ):
        run.files.environment.write_bytes(rubbish)
        again = Run.resume(run.folder)
        again.extend(again.trainer.steps + 1)
        again.train()
        (stretch,) = environment.stretches(environment.read(run.folder))
        assert stretch["how"] == "finished" and stretch["to"] == again.trainer.steps


# -- full and read-only disks -----------------------------------------------------------------------------------------


def fail_at(moment: int, patch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The disk is full from the given write on; returns how many there were."""
    count = 0

    def full(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **others: Any) -> Any:
            nonlocal count
            count += 1
            if count > moment:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args, **others)

        return call

    patch.setattr(os, "fsync", full(os.fsync))
    patch.setattr(Path, "mkdir", full(Path.mkdir))
    patch.setattr(Path, "rename", full(Path.rename))
    patch.setattr(Log, "_write", writing(full(lambda: None)))
    return lambda: count


def writing(room: Callable[[], None]) -> Callable[..., None]:
    """A line of a log needs room on the disk."""
    write = Log._write

    def call(log: Log, record: dict[str, Any]) -> None:
        with log._writable():
            room()
        write(log, record)

    return call


def test_a_disk_that_is_full_at_any_moment_loses_nothing_that_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = new_run(tmp_path, "whole", **SMALL)
    whole.train()
    for moment in range(0, 200, 4):
        run = new_run(tmp_path, f"full-{moment}", **SMALL)
        with monkeypatch.context() as patch:
            used = fail_at(moment, patch)
            try:
                run.train()
            except ChainruleError as error:
                assert "cannot be written (No space left on device)" in str(error)
                assert "\n" not in str(error)
        if used() <= moment:
            break
        if run.folder.exists():  # else not a step was made
            Run.resume(run.folder).train()
            assert outcome(run.folder) == outcome(whole.folder)
    assert moment > 50


SMALL_DISK = """
set -e
mount -t tmpfs -o size={size} tmpfs {disk}
"{python}" -m chainrule.cli train gpt {text} --n-layer 1 --n-head 2 --n-embd 32 --block-size 16 --batch-size 2 \
    --max-steps 50 --save-every 5 --eval-windows 8 --out {disk}/run >/dev/null 2>{disk}.error || echo code $?
mount -o remount,ro {disk}
"{python}" -m chainrule.cli train gpt --resume {disk}/run 2>>{disk}.error || echo code $?
ls {disk}/run/checkpoints
"{python}" -m chainrule.cli sample {disk}/run --max-new-tokens 5 --json
"""


def test_a_real_disk_that_is_full_and_then_read_only(tmp_path: Path) -> None:
    """A file system of its own in a namespace of its own, where the system allows it without being root."""
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode
    ):
        pytest.skip("no namespaces for users here")
    disk, text = tmp_path / "disk", corpus(tmp_path).name
    disk.mkdir()
    script = SMALL_DISK.format(disk=disk, text=text, python=sys.executable, size="600k")
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True, timeout=120
    )
    full, read_only = Path(f"{disk}.error").read_text().splitlines()
    assert full.startswith("error: ") and full.endswith("cannot be written (No space left on device)")
    assert read_only.startswith("error: ") and "Read-only file system" in read_only
    said = done.stdout.splitlines()
    assert [line for line in said if line.startswith("code")] == ["code 2", "code 2"]
    assert any(line.startswith("step_0000") for line in said)  # the last good one
    assert '"text"' in said[-1], done.stderr  # and it writes


def test_a_folder_that_cannot_be_locked_is_an_error(tmp_path: Path) -> None:
    run = new_run(tmp_path, **SMALL)
    shutil.rmtree(run.folder)
    with pytest.raises(ConfigError, match=r"run: cannot be written \(No such file or directory\)"):
        run.train()
    assert not run.folder.exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_removed_while_training_stays_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    run = new_run(tmp_path, **SMALL)
    update = run.trainer.update

    def removed(lr: float) -> Any:
        if run.trainer.steps == 3:
            shutil.rmtree(run.folder)
            if replaced:
                run.folder.mkdir()
        return update(lr)

    monkeypatch.setattr(run.trainer, "update", removed)
    with pytest.raises(Failure, match="run: was removed or replaced"):
        run.train()
    assert run.folder.exists() == replaced and not any(run.folder.glob("*"))


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("best", "loss", None),
        ("best", "score", "x"),
        ("train", "batch_size", 1.5),
        ("train", "eval_windows", True),
        ("data", "name", None),
        ("data", "sha256", 7),
    ],
)
def test_a_fact_of_another_type_is_refused_though_its_hash_was_renewed(
    finished: Run, tmp_path: Path, part: str, name: str, value: Any
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    for path in (folder / "checkpoints").iterdir():
        training = json.loads((path / "training.json").read_bytes())
        evaluated = {"step": 1, "loss": 1.0, "score": None, "waited": 0}  # as if it had been
        training[part] = (training[part] or evaluated) | {name: value}
        list_anew(path / "training.json", json.dumps(training).encode())
    with pytest.raises(CheckpointError, match=r"training\.json does not fit this version"):
        Run.resume(folder)


def test_too_little_memory_to_save_is_one_line_and_the_checkpoint_before_it_stays(
    finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    run = Run.resume(folder)

    def too_large(arrays: Any) -> list[bytes]:
        raise MemoryError

    monkeypatch.setattr("chainrule.io.safetensors.parts", too_large)
    with pytest.raises(Failure, match="step_000006: cannot be written, not enough memory"):
        run.save()
    assert not list((folder / "checkpoints").glob(".*")) and loaded(folder) == (6, [])


# -- signals and other processes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_a_signal_finishes_the_step_and_a_second_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, again: bool
) -> None:
    whole = new_run(tmp_path, "whole", **SMALL, patience=5)
    whole.train()
    update, place = Trainer.update, str(tmp_path / "run")

    def interrupted(trainer: Trainer, lr: float) -> tuple[float, float]:
        if trainer.steps == 4:
            for _ in range(1 + again):
                os.kill(os.getpid(), number)
        return update(trainer, lr)

    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    flags += ["--batch-size=4", "--lr=1e-2", "--warmup=3", "--patience=5", "--n-layer=1", "--n-head=2"]
    flags += ["--n-embd=16", "--block-size=16", "--dropout=0.1", "--out", place]
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr(Trainer, "update", interrupted)
        main(["train", "gpt", whole.corpus.name, *flags])
    assert stop.value.code == 130
    stretch = environment.stretches(environment.read(Path(place)))[-1]
    assert (stretch["to"], stretch["how"]) == ((4, "KeyboardInterrupt") if again else (5, "stopped"))
    resumed = Run.resume(place)
    assert resumed.trainer.steps == (4 if again else 5)
    resumed.train()
    assert losses(resumed) == losses(whole) and validations(resumed) == validations(whole)
    assert outcome(resumed.folder) == outcome(whole.folder)


def test_two_processes_cannot_share_a_run_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    text, folder = corpus(tmp_path).name, tmp_path / "run"
    flags = ["--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--eval-windows=8"]
    command = [sys.executable, "-m", "chainrule.cli", "train", "gpt", text, *flags]
    command += ["--max-steps=100000", "--save-every=5", "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(read(folder / "log.jsonl")) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ConfigError, match="another process is at work here"):
        Run.resume(folder).train()
    process.kill()
    process.wait()
    assert environment.stretches(environment.read(folder))[-1].get("how") is None
    run = Run.resume(folder)
    run.trainer.plan.total = run.trainer.steps + 1
    run.train()
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    whole = Run.new(tmp_path / "whole", run.corpus, run.trainer.config, **size)  # type: ignore[arg-type]
    whole.trainer.plan.total = run.trainer.steps
    whole.train()
    assert outcome(folder) == outcome(whole.folder)
    began = [stretch["from"] for stretch in environment.stretches(environment.read(folder))]
    assert began == [0, run.trainer.steps - 1]


def test_a_run_that_was_killed_before_its_first_checkpoint_says_what_to_do(tmp_path: Path) -> None:
    run = new_run(tmp_path, **SMALL)  # made, and never trained
    with pytest.raises(
        CheckpointError, match=r"stopped before its first checkpoint \(begin it again, without resume\)"
    ):
        Run.resume(run.folder)
