"""Reading UTF-8 files; errors name the line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from chainrule.errors import DataError

LONGEST_LINE = 16 * 2**20  # bytes; a file with a longer line is not meant to be read by lines


@contextmanager
def reading(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, decompressed if its name ends in .gz; errors become a DataError."""
    if not path.is_file():
        what = "not a regular file" if path.exists() else "no such file"
        raise DataError(f"{path}: {what} (must be a text file)")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def read_text(path: Path) -> str:
    """The text of a UTF-8 file without its byte order mark, line ends as \\n; a DataError names the bad line."""
    with reading(path) as file:
        content = file.read()
    text = decode(path, content)
    if not text.strip():  # empty, or only a byte order mark
        raise _no_text(path, len(content))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line without its end) of a UTF-8 file, one at a time; holds one line in memory."""
    number, size, blank = 0, 0, True
    with reading(path) as file:
        while content := file.readline(LONGEST_LINE + 1):
            number, size = number + 1, size + len(content)
            if len(content) > LONGEST_LINE:
                rule = f"must be at most {LONGEST_LINE:,} bytes: break it up"
                raise DataError(f"{path}: line {number} is longer than {LONGEST_LINE:,} bytes ({rule})")
            line = decode(path, content, number)
            blank = blank and not line.strip()
            yield number, line.removesuffix("\n").removesuffix("\r")
    if blank:
        raise _no_text(path, size)


def decode(path: Path, content: bytes, first: int = 1) -> str:
    """Decode bytes that begin in line `first` of a file, without a byte order mark."""
    if (zero := content.find(b"\0")) >= 0:
        line = first + content.count(b"\n", 0, zero)
        raise DataError(f"{path}: binary file, zero byte in line {line} (must be text in UTF-8)")
    try:
        return content.decode("utf-8-sig" if first == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line, byte = first + error.object.count(b"\n", 0, error.start), error.object[error.start]
        raise DataError(
            f"{path}: line {line} is not UTF-8, byte 0x{byte:02x} (convert the file to UTF-8)"
        ) from error


def _no_text(path: Path, size: int) -> DataError:
    return DataError(f"{path}: no text in {size} bytes (must not be empty)")
