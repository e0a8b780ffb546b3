"""Reading binary files that may be damaged or hostile: mapped into memory, never beyond their end."""

from __future__ import annotations

import math
import mmap
import struct
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.files import check_regular
from chainrule.io.files import CUT, cannot_read


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped: read from disk on access."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return memoryview(b"")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            _MAPPED.add(mapped)
            return memoryview(mapped)
    except OSError as error:
        raise cannot_read(path, error) from error


_MAPPED: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def let_go() -> None:
    """Mapped files take no memory until they are read again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapped in list(_MAPPED):
            mapped.madvise(mmap.MADV_DONTNEED)


def widen_bf16(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """bfloat16 is the upper half of a float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Cursor:
    """A position in a file that advances as values are read; reading beyond the end is an error."""

    def __init__(self, content: memoryview, at: int = 0) -> None:
        self.content = content
        self.at = at

    @property
    def rest(self) -> int:
        """Bytes from here to the end."""
        return len(self.content) - self.at

    def take(self, size: int) -> memoryview:
        """The next `size` bytes."""
        if not 0 <= size <= self.rest:
            raise FormatError(f"{size} bytes at {self.at}, the file has {len(self.content)} ({CUT})")
        self.at += size
        return self.content[self.at - size : self.at]

    def unpack(self, layout: str) -> Any:
        """The next value in a format of `struct`, little-endian; a tuple for several."""
        values = struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))
        return values[0] if len(values) == 1 else values

    def array(self, dtype: str, *shape: int) -> npt.NDArray[Any]:
        """The next values, as a view of the file."""
        kind = np.dtype(dtype)
        return np.frombuffer(self.take(math.prod(shape) * kind.itemsize), kind).reshape(shape)

    def text(self, size: int) -> str:
        """The next `size` bytes as UTF-8."""
        place = self.at
        try:
            return bytes(self.take(size)).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"text at byte {place} is not UTF-8 ({CUT})") from error
