"""The directory of a run: the only place that knows the names in it.

RUN/
    log.jsonl             a line per step, evaluation and finding                (train/log.py)
    config.toml           the settings, as a file for --config
    environment.json      what the run was made with                             (environment.py)
    vectors.txt           word vectors, when they are done
    checkpoints/
        step_000500/      files of `checkpoint.py`, listed in manifest.json
    .lock                 held while a process trains here
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from chainrule.errors import ConfigError
from chainrule.files import alone, taken
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
        self.lock = self.path / ".lock"
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

    def make(self) -> None:
        """Make the directory, with an empty log; from now on it is taken."""
        make_empty(self.path, self.log.name)

    def refuse_checkpoint(self) -> None:
        """A run is resumed as a whole: its next checkpoint would otherwise be written into this one."""
        if self.is_checkpoint:
            raise ConfigError(f"resume: {self.path} is a checkpoint (must be the directory of its run)")

    @property
    def busy(self) -> bool:
        """A process trains here now."""
        return taken(self.lock)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lock this directory while training; remove it at the end if no step was taken."""
        with alone(self.lock):
            try:
                yield
            finally:
                if self.path.is_dir() and self._untouched():
                    shutil.rmtree(self.path, ignore_errors=True)

    def _untouched(self) -> bool:
        """There is nothing but what a run begins with: no step was made."""
        if any(record["step"] for record in read(self.log)):
            return False
        first = {self.log, self.settings, self.environment, self.lock, self.checkpoints}
        return {*self.path.iterdir()} <= first and {*self.checkpoints.glob("*")} <= {self.checkpoint(0)}


def step_of(checkpoint: Path) -> int:
    """The step of a checkpoint, by its name."""
    return int(checkpoint.name[len(STEP) :])


def make_empty(folder: Path, *files: str) -> None:
    """Make a directory for results, with empty `files`; one with something in it is left alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder}: the directory is not empty (choose another, or resume that run)")
        for name in files:
            (folder / name).touch()
        if not os.access(folder, os.W_OK):  # found now, not after hours of training
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used for a run ({error.strerror})") from error


def free_folder(folder: Path) -> Path:
    """`folder` itself, or the first of folder-2, folder-3, ... that does not exist."""
    names = (folder if n == 1 else folder.with_name(f"{folder.name}-{n}") for n in count(1))
    return next(path for path in names if not path.exists())
