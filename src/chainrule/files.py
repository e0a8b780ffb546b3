"""Atomic writing: files and folders appear completely or not at all, even after a crash; and numbers for JSON."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from chainrule.errors import ConfigError


def write(path: Path, content: bytes) -> None:
    """Write the content of a file, replacing the old one."""
    with new_file(path, replace=True) as file:
        file.write(content)


@contextmanager
def new_file(path: Path, *, replace: bool = False) -> Iterator[IO[bytes]]:
    """A file to write; it gets its name when it is completely on disk, and an error leaves nothing.

    With `replace` an existing file stays until then and is replaced; a link is followed to its file.
    """
    path = path.resolve()
    if not replace:
        _refuse_existing(path)
    elif path.exists() and not path.is_file():
        raise ConfigError(f"{path}: is not a regular file (choose another name)")
    partial = _partial(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            yield file
            flush(file)
        partial.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        with suppress(OSError):  # it was renamed, or never created
            partial.unlink()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; it gets its name when it is complete, and an error leaves nothing.

    The caller must flush the files in it.
    """
    _refuse_existing(path)
    partial = _partial(path)
    try:
        partial.mkdir(parents=True)
        yield partial
        flush_folder(partial)
        if path.is_dir():
            path.rmdir()  # an empty folder may exist
        partial.rename(path)
        flush_folder(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold an exclusive lock; the system releases it if the process dies."""
    try:
        file = lock.open("w")
    except OSError as error:
        raise _cannot_write(lock, error) from error
    with file:
        if not _locked(file):
            rule = "wait for it, or stop it"
            raise ConfigError(f"{lock.parent}: another process is at work here ({rule})")
        yield


def taken(lock: Path) -> bool:
    """Whether another process holds the lock of `alone`; writes nothing."""
    if not lock.is_file():
        return False
    with lock.open() as file:
        return not _locked(file)


def _locked(file: IO[Any]) -> bool:
    """Lock a file unless another process has; always true where the system has no such locks."""
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def flush(file: IO[bytes]) -> None:
    """Wait until the written data is on disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def plain(value: Any) -> Any:
    """The same dicts, lists and numbers for JSON, which has no NaN and no infinity: None stands for these."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _partial(path: Path) -> Path:
    return path.absolute().with_name(f".{path.absolute().name}.{os.getpid()}.partial")


def _refuse_existing(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise ConfigError(f"{path}: exists already (choose another name, or remove it)")


def _cannot_write(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{path}: cannot be written ({error.strerror or error})")
