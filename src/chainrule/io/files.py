"""Reading and writing whole files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from chainrule.errors import ConfigError, DataError


def read_bytes(path: Path) -> bytes:
    """The content of a file; a DataError that names it if there is none."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is there completely or not at all, whatever happens meanwhile."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from error
