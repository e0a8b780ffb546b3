"""Checkpoints: a directory that is there completely or not at all, checked against its hashes when read.

    RUN/checkpoints/step_000500/
        model.safetensors  config.json  tokenizer.json            a directory that `transformers` loads as well
        tokenizer_config.json  generation_config.json             (io/hf/pretrained.py)
        optimizer.safetensors  training.json
        carried.safetensors                                       of a recurrent model, its state in the text
        trained.safetensors                                       the weights themselves, where the model is their mean
        adapter_model.safetensors  adapter_config.json            of a tuned model, in place of its model
        manifest.json                                             sizes and SHA-256 of the others

It is written under another name, flushed to the disk and renamed: a crash leaves the last good one. Where the same
step was there before, that is set aside as .step_N.old in between, and taken back if the new one never came.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy.typing as npt

from chainrule.errors import ChainruleWarning, CheckpointError, DataError, Failure, FormatError
from chainrule.files import flush, flush_folder, json_value, regular_bytes
from chainrule.io import safetensors
from chainrule.io.binary import let_go, map_file
from chainrule.runs.folder import MANIFEST, STEP, RunFolder, step_of

FORMAT = 1
KEEP = 2  # checkpoints of a run: the newest, and the one before it


@dataclass(frozen=True)
class Checkpoint:
    """All that is needed to use a model and to resume its training; each field is a file."""

    model: Mapping[str, npt.NDArray[Any]]  # empty if there is an adapter
    optimizer: Mapping[str, npt.NDArray[Any]]
    config: dict[str, Any]  # of the model
    tokenizer: dict[str, Any]
    training: dict[str, Any]  # the step, the settings, the data
    # An empty one of these has no file.
    carried: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    trained: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # where `model` is a mean of them
    tokenizer_config: dict[str, Any] = field(default_factory=dict)
    generation_config: dict[str, Any] = field(default_factory=dict)
    adapter_model: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    adapter_config: dict[str, Any] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """How many steps were made."""
        step = self.training.get("step")
        if type(step) is not int or step < 0:
            raise CheckpointError(f"training.json: step is {step!r} (must be a natural number)")
        return step


ARRAYS = ("model", "optimizer", "carried", "trained", "adapter_model")
FILES = {f.name: f"{f.name}.{'safetensors' if f.name in ARRAYS else 'json'}" for f in fields(Checkpoint)}
TOKENIZER = (
    "tokenizer_sha256"  # in training.json: what ids mean, also after files were exchanged and listed anew
)
OPTIONAL = {"carried", "trained", "tokenizer_config", "generation_config", "adapter_model", "adapter_config"}
ADAPTER = {"adapter_model", "adapter_config"}  # in place of the model


def save(run: Path, checkpoint: Checkpoint, keep: Collection[int] = ()) -> Path:
    """Write RUN/checkpoints/step_N and drop all but the newest few and the steps `keep`; returns its path."""
    optional = OPTIONAL | {"model"} if checkpoint.adapter_config else OPTIONAL
    parts = {name: file for name, file in FILES.items() if name not in optional or getattr(checkpoint, name)}
    files = RunFolder(run)
    folder, final = files.checkpoints, files.checkpoint(checkpoint.step)
    partial, old = folder / f".{final.name}.partial", folder / f".{final.name}.old"
    try:
        _take_back(folder)
        for leftover in (*folder.glob(f".{STEP}*.partial"), *folder.glob(f".{STEP}*.old")):
            shutil.rmtree(leftover, ignore_errors=True)
        partial.mkdir(parents=True)
        known = vars(checkpoint) | {"training": checkpoint.training | {TOKENIZER: _tokenizer_sum(checkpoint)}}
        sums = {file: _write(partial / file, known[name]) for name, file in parts.items()}
        _write(partial / MANIFEST, {"format": FORMAT, "files": sums})
        flush_folder(partial)
        if final.exists():  # the same step again, after a resume
            final.rename(old)
        partial.rename(final)
        flush_folder(folder)
        for stale in (old, *files.saved()[:-KEEP]):
            if stale == old or step_of(stale) not in keep:
                shutil.rmtree(stale, ignore_errors=True)
    except (OSError, MemoryError, KeyboardInterrupt) as error:
        shutil.rmtree(partial, ignore_errors=True)
        with contextlib.suppress(OSError):  # `find` tries again
            _take_back(folder)
        if isinstance(error, MemoryError):
            fix = "free some memory and resume; the previous checkpoint is intact"
            raise Failure(f"{final}: cannot be written, not enough memory ({fix})") from error
        if isinstance(error, OSError):
            raise CheckpointError(f"{final}: cannot be written ({error.strerror or error})") from error
        raise
    return final


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, or the newest good one of a run. Every file must be as it was saved."""
    if find(path) == path:
        return _load(path)
    found, damaged = _newest_good(RunFolder(path).saved())
    if found is None:
        fix = "bring back a copy, or begin a new run"
        raise CheckpointError(f"{damaged}; there is no good one before it ({fix})")
    return found


def before(run: Path, step: int) -> Checkpoint | None:
    """The newest good checkpoint of a run from which `step` is still to be made."""
    return _newest_good([path for path in RunFolder(run).saved() if step_of(path) < step])[0]


def read_training(path: Path) -> dict[str, Any]:
    """The training.json of a checkpoint alone: how far its run was, and what was best."""
    file = path / FILES["training"]
    return _decode(file, _read(file))


def _newest_good(candidates: list[Path]) -> tuple[Checkpoint | None, CheckpointError | None]:
    """The newest checkpoint that loads, and the error of the newest one if it is damaged; then also warns."""
    damaged = None
    for candidate in reversed(candidates):
        try:
            found = _load(candidate)
        except CheckpointError as error:
            damaged = damaged or error
            continue
        if damaged:
            warnings.warn(f"{damaged}; taking {candidate.name} instead", ChainruleWarning, stacklevel=3)
        return found, damaged
    return None, damaged


def _load(path: Path) -> Checkpoint:
    manifest = _decode(path / MANIFEST, _read(path / MANIFEST))
    if manifest.get("format") != FORMAT:
        raise CheckpointError(f"{path}: checkpoint format {manifest.get('format')!r} (must be {FORMAT})")
    sums = manifest.get("files")
    adapter = isinstance(sums, dict) and FILES["adapter_config"] in sums
    named = FILES.keys() - OPTIONAL - {"model"} | ADAPTER if adapter else FILES.keys() - OPTIONAL
    needed = [file for name, file in FILES.items() if name in named]
    if not isinstance(sums, dict) or not set(needed) <= set(sums) <= set(FILES.values()):
        raise CheckpointError(f"{path / MANIFEST}: must list {', '.join(needed)}")
    parts = {name: file for name, file in FILES.items() if file in sums}
    contents = {name: _verified(path / file, sums[file]) for name, file in parts.items()}
    known: dict[str, Any] = {name: _decode(path / file, contents[name]) for name, file in parts.items()}
    found = Checkpoint(**{"model": {}} | known)
    expected = found.training.pop(TOKENIZER, None)  # versions before this one did not write it
    if expected not in (None, _tokenizer_sum(found)):
        raise CheckpointError(
            f"{path / FILES['tokenizer']}: is not the tokenizer of this run (put the old one back)"
        )
    return found


def find(path: Path) -> Path:
    """The newest checkpoint of a run, or `path` itself if it is a checkpoint."""
    files = RunFolder(path)
    if files.is_checkpoint:
        return path
    files.refuse_model()
    folder = files.checkpoints
    try:
        _take_back(folder)
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be mended ({error.strerror or error})") from error
    found = files.saved()
    if not found:
        if files.log.is_file():
            rule = "begin it again, without resume"
            raise CheckpointError(f"{path}: stopped before its first checkpoint ({rule})")
        what = (
            "holds no checkpoint" if path.is_dir() else "is a file" if path.exists() else "no such directory"
        )
        runs = sorted(inside.parent for inside in path.glob(f"*/{folder.name}"))
        example = f", such as {runs[0]}" if runs else ""
        raise CheckpointError(f"{path}: {what} (must be the directory of a run{example})")
    return found[-1]


def _take_back(folder: Path) -> None:
    """Give a checkpoint its name again that was set aside for one of the same step which was never finished."""
    for old in folder.glob(f".{STEP}*.old"):
        final = folder / old.name[1:].removesuffix(".old")
        if not final.exists():
            old.rename(final)


def _decode(path: Path, content: bytes | memoryview) -> dict[str, Any]:
    try:
        return json_value(bytes(content)) if path.suffix == ".json" else safetensors.decode(content)
    except FormatError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _verified(path: Path, expected: Any) -> bytes | memoryview:
    """The content of a file, if it has its hash; arrays are mapped, so that those that nobody reads take no memory."""
    content = _read(path) if path.suffix == ".json" else _mapped(path)
    found = _sum(content)
    let_go()
    if found != expected:
        raise CheckpointError(
            f"{path}: is damaged, its {len(content)} bytes do not have the hash in {MANIFEST}"
        )
    return content


def _mapped(path: Path) -> memoryview:
    try:
        return map_file(path)
    except DataError as error:
        raise CheckpointError(str(error)) from error


def _read(path: Path) -> bytes:
    try:
        return regular_bytes(path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    except DataError as error:
        raise CheckpointError(str(error)) from error


def _write(path: Path, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write a file to the disk, array by array; returns its line of the manifest."""
    is_json = path.suffix == ".json"
    parts = [(json.dumps(value, indent=1) + "\n").encode()] if is_json else safetensors.parts(value)
    size, total = 0, hashlib.sha256()
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
            total.update(part)
            size += len(part)
        flush(file)
    return {"bytes": size, "sha256": total.hexdigest()}


def _tokenizer_sum(checkpoint: Checkpoint) -> str:
    return hashlib.sha256(json.dumps(checkpoint.tokenizer, sort_keys=True).encode()).hexdigest()


def _sum(content: bytes | memoryview) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
