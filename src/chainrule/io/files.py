"""Reading whole files."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from chainrule.errors import DataError
from chainrule.files import regular_bytes


def read_bytes(path: Path) -> bytes:
    """The content of a text file without its byte order mark; a DataError if it cannot be read."""
    try:
        return regular_bytes(path).removeprefix(BOM_UTF8)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
