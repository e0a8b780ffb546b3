"""Reading whole files."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from chainrule.errors import DataError


def read_bytes(path: Path) -> bytes:
    """The content of a text file without its byte order mark; a DataError if it cannot be read."""
    try:
        return path.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def check_regular(path: Path) -> None:
    """Refuse what exists and is neither a file nor a directory: a pipe would keep its reader waiting."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: not a regular file (must be a file or a directory)")
