"""The directory of a run, locked while a process trains there: the place that knows the names in it.

RUN/
    log.jsonl             a line per step, evaluation and finding                (train/log.py)
    config.toml           the settings, as a file for --config
    environment.json      what the run was made with                             (records/environment.py)
    vectors.txt           word vectors, when they are done
    openings.jsonl        a line for each time that test data were opened to evaluate it
    checkpoints/
        step_000500/      files of `checkpoint.py`, listed in manifest.json
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from chainrule.errors import CheckpointError, ConfigError, Failure
from chainrule.files import alone, check_folder, is_partial, taken
from chainrule.io.loading import model_files
from chainrule.train.log import read

MANIFEST = "manifest.json"
STEP = "step_"


class RunFolder:
    """The directory of a run, there or to be made."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.log = self.path / "log.jsonl"
        self.settings = self.path / "config.toml"
        self.environment = self.path / "environment.json"
        self.vectors = self.path / "vectors.txt"
        self.openings = self.path / "openings.jsonl"
        self.lock = self.path / ".lock"  # of versions that did not lock the directory itself
        self.checkpoints = self.path / "checkpoints"

    def checkpoint(self, step: int) -> Path:
        """Where the checkpoint of a step is, or will be."""
        return self.checkpoints / f"{STEP}{step:06d}"

    def saved(self) -> list[Path]:
        """The checkpoints that are there, the oldest first."""
        found = [path for path in self.checkpoints.glob(f"{STEP}*") if path.name[len(STEP) :].isdecimal()]
        return sorted(found, key=step_of)

    @property
    def is_checkpoint(self) -> bool:
        """The directory is a single checkpoint, not a run."""
        return (self.path / MANIFEST).exists()

    @property
    def is_model(self) -> bool:
        """The path is a model without its training, such as an imported one."""
        if self.path.is_file():
            return self.path.suffix in (".gguf", ".safetensors")
        single = bool(model_files(self.path)) and not self.checkpoints.is_dir()
        return single or ((self.path / "config.json").is_file() and not self.is_checkpoint)

    @property
    def run(self) -> RunFolder:
        """The run of a checkpoint; of a run itself"""
        inside = self.is_checkpoint and self.path.resolve().parent.name == self.checkpoints.name
        return RunFolder(self.path.resolve().parents[1]) if inside else self

    def opened(self) -> list[dict[str, str]]:
        """Each time that test data were opened to evaluate the run, the oldest first: time, data, sha256"""
        try:
            lines = self.openings.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            with suppress(ValueError):  # a line that was cut short counts as none
                found.append(json.loads(line))
        return [each for each in found if isinstance(each, dict) and {"data", "sha256"} <= each.keys()]

    def open_test(self, data: str, sha256: str) -> int | None:
        """Record that test data are opened; how often these have been by now, or None where nothing can be written

        A choice made by looking at test data often makes the result on them too good.
        """
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        try:
            with self.openings.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"time": now, "data": data, "sha256": sha256}) + "\n")
        except OSError:
            return None
        return sum(each["sha256"] == sha256 for each in self.opened())

    def refuse_model(self) -> None:
        """Only a run can be examined, replayed and resumed."""
        if self.is_model:
            rule = "must be the directory of a run; chainrule sample, eval and export take the model"
            raise CheckpointError(f"{self.path}: a model without its training ({rule})")

    def make(self) -> None:
        """Make the directory, with an empty log; from now on it is taken. One where no run ever began is taken over."""
        if not self.abandoned:
            make_empty(self.path, self.log.name)

    def check_free(self) -> None:
        """Refuse a directory that `make` would refuse, before the data are read."""
        if not self.abandoned:
            check_empty(self.path)

    @property
    def abandoned(self) -> bool:
        """A run was made here and stopped before its first checkpoint: there is nothing to resume."""
        return self.log.is_file() and not self.saved() and self._untouched() and not self.busy

    def refuse_checkpoint(self) -> None:
        """A run is resumed as a whole: its next checkpoint would otherwise be written into this one."""
        if self.is_checkpoint:
            raise ConfigError(f"resume: {self.path} is a checkpoint (must be the directory of its run)")

    @property
    def busy(self) -> bool:
        """A process trains here now."""
        return taken(self.path)

    @contextmanager
    def at_work(self) -> Iterator[Callable[[], None]]:
        """Lock this directory while training; remove it at the end if no step was taken.

        Yields a check that it is still there.
        """
        with alone(self.path) as check:
            try:
                yield check
            finally:
                with suppress(Failure):  # what has taken its place is another's
                    check()
                    if self._untouched():
                        shutil.rmtree(self.path, ignore_errors=True)

    def _untouched(self) -> bool:
        """There is nothing but what a run begins with: no step was made."""
        if any(record["step"] for record in read(self.log)):
            return False
        first = {self.log, self.settings, self.environment, self.lock, self.checkpoints}
        whole = {path for path in self.checkpoints.glob("*") if not path.name.startswith(".")}
        found = {path for path in self.path.iterdir() if not is_partial(path)}
        return found <= first and whole <= {self.checkpoint(0)}


def step_of(checkpoint: Path) -> int:
    """The step of a checkpoint, by its name."""
    return int(checkpoint.name[len(STEP) :])


def check_empty(folder: Path) -> None:
    """Refuse a directory for results that has something in it."""
    check_folder(folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: the directory is not empty (choose another, or resume that run)")


def make_empty(folder: Path, *files: str) -> None:
    """Make a directory for results, with empty `files`; one with something in it is left alone."""
    check_empty(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in files:
            (folder / name).touch(exist_ok=False)  # another process may be about to use it too
        if not os.access(folder, os.W_OK):  # found now, not after hours of training
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used for a run ({error.strerror})") from error


def make_free(folder: Path, *files: str) -> Path:
    """Make `folder`, or the first of folder-2, ... that is not there, as `make_empty` does; returns it.

    Two processes never get the same one.
    """
    for path in _numbered(folder):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if path.parent.is_dir():
                continue
            raise ConfigError(f"{path.parent}: is not a directory (choose another)") from None
        except OSError as error:
            raise ConfigError(f"{path}: cannot be used for a run ({error.strerror})") from error
        make_empty(path, *files)
        return path
    raise AssertionError("there is always another number")


def free_folder(folder: Path, besides: Container[str] = ()) -> Path:
    """`folder` itself, or the first of folder-2, folder-3, ... that does not exist and whose name is not `besides`."""
    return next(path for path in _numbered(folder) if not path.exists() and path.name not in besides)


def _numbered(folder: Path) -> Iterator[Path]:
    return (folder if n == 1 else folder.with_name(f"{folder.name}-{n}") for n in count(1))
