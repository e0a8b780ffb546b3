"""The directory of a run: what is in it, who may write there, and what it may be called."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from chainrule.errors import ConfigError
from chainrule.files import alone
from chainrule.runs import environment
from chainrule.train.log import read

LOCK, LOG, SETTINGS = ".lock", "log.jsonl", "config.toml"
FIRST = {LOCK, LOG, SETTINGS, environment.FILE, "checkpoints"}  # what is there before the first step


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


def refuse_checkpoint(folder: Path) -> None:
    """What goes on is a run: its next checkpoint would otherwise be written into this one."""
    if (folder / "manifest.json").exists():
        raise ConfigError(f"resume: {folder} is a checkpoint (must be the directory of its run)")


@contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Nobody else trains in this directory meanwhile; one in which not a step was made is removed at the end."""
    with alone(folder / LOCK):
        try:
            yield
        finally:
            if folder.is_dir() and _untouched(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _untouched(folder: Path) -> bool:
    """Nothing is in there but what a run begins with: not a step was made."""
    if any(record["step"] for record in read(folder / LOG)):
        return False
    saved = {path.name for path in (folder / "checkpoints").glob("*")}
    return {path.name for path in folder.iterdir()} <= FIRST and saved <= {"step_000000"}
