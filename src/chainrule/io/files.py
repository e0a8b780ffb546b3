"""Reading files, and errors that name them."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, DataError, FileName, FormatError
from chainrule.files import json_value, regular_bytes

CUT = "the file is cut or damaged: get it again"


def read_bytes(path: Path) -> bytes:
    """The content of a text file without its byte order mark; a DataError if it cannot be read."""
    try:
        return regular_bytes(path).removeprefix(BOM_UTF8)
    except OSError as error:
        raise cannot_read(path, error) from error


def read_json(path: Path, kind: type = dict, once: Callable[..., Any] | None = None) -> Any:
    """The object, or the list, in a JSON file."""
    with naming(path):
        return json_value(read_bytes(path), kind, once)


def cannot_read(path: Path, error: OSError) -> DataError:
    return DataError(FileName(path), f": cannot be read ({error.strerror})")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of what is inside are about this file: a message that names none begins with its name."""
    try:
        yield
    except ChainruleError as error:
        if isinstance(next(iter(error.args), None), FileName):
            raise
        raise FormatError(FileName(path), f": {error}") from error
