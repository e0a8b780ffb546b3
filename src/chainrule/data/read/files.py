"""Reading UTF-8 files; errors name the line."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError, DataError
from chainrule.files import as_given

UNPACKED, RATIO = 256 * 2**20, 20
"""Bytes, and times its size, to which a compressed file may grow; a text seldom shrinks to less than a tenth."""
LIMIT = "CHAINRULE_UNPACK_LIMIT"
LONGEST_LINE = 16 * 2**20  # bytes; a file with a longer line is not meant to be read by lines


def is_packed(path: Path) -> bool:
    """Whether the name says that the file is compressed."""
    return path.suffix.lower() == ".gz"


@contextmanager
def reading(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, decompressed if its name ends in .gz; errors become a DataError."""
    if not path.is_file():
        what = "not a regular file" if path.exists() else "no such file"
        rule = "nothing is downloaded; give a text file" if "://" in as_given(path) else "must be a text file"
        raise DataError(f"{as_given(path)}: {what} ({rule})")
    try:
        if is_packed(path):
            with gzip.open(path) as packed, BufferedReader(_Unpacked(path, packed)) as file:
                yield file
        else:
            with path.open("rb") as file:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def unpack_limit(path: Path) -> int:
    """Bytes to which a compressed file may grow: as $CHAINRULE_UNPACK_LIMIT says, else by its size."""
    said = os.environ.get(LIMIT, "")
    if not said:
        return max(UNPACKED, RATIO * path.stat().st_size)
    number = re.fullmatch(r"(\d{1,12})([kMGT]?)B?", said)
    if number is None:
        raise ConfigError(f"{LIMIT}: is {said!r} (must be a number of bytes, such as 800M or 10G)")
    return int(number[1]) * 1000 ** " kMGT".index(number[2] or " ")


def too_large(path: Path, limit: int) -> DataError:
    """A compressed file that grows beyond what is allowed."""
    fix = "if it is right, allow more with --unpack-limit 10G"
    return DataError(f"{path}: unpacks to more than {limit:,} bytes, it has {path.stat().st_size:,} ({fix})")


class _Unpacked(RawIOBase):
    """A compressed file as it is unpacked; it ends in an error rather than in all memory."""

    def __init__(self, path: Path, packed: gzip.GzipFile) -> None:
        self.path, self.packed, self.limit = path, packed, unpack_limit(path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.packed.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        count = self.packed.readinto(buffer)
        if self.packed.tell() > self.limit:
            raise too_large(self.path, self.limit)
        return count


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
