"""Reading whole files."""

from __future__ import annotations

from pathlib import Path

from chainrule.errors import DataError


def read_bytes(path: Path) -> bytes:
    """The content of a file; a DataError that names it if there is none."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
