"""The GGUF container: settings by name, then tensors by name, then their values.

    magic  version  number of tensors  number of settings
    settings: name, type, value
    tensors: name, sizes (the innermost first), format, offset
    values, each tensor at a multiple of `general.alignment`

Every size is checked against the file before memory is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.errors import FormatError
from chainrule.files import new_file
from chainrule.io.binary import Cursor, map_file
from chainrule.io.files import CUT
from chainrule.io.gguf.blocks import FORMATS, REFUSED, Format
from chainrule.io.lazy import Lazy, Matrix

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
LONGEST_NAME = 65535

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# What a decoder calls the formats that it holds as they are: all but F32.
KEPT = {format.name: format.name.lower() for format in FORMATS.values() if format.block > 1} | {
    "F16": "fp16",
    "BF16": "bf16",
}


class Stored(Lazy):
    """A tensor in the file, decoded when it is read."""

    def __init__(self, format: Format, shape: tuple[int, ...], content: memoryview) -> None:
        super().__init__(shape, self.array)
        self.format = format
        self.content = content

    def array(self) -> Matrix:
        """Its values in float32."""
        return self.format.decode(self.content).reshape(self.shape)

    @property
    def weight_format(self) -> str | None:
        return KEPT.get(self.format.name) if self.ndim == 2 else None

    def blocks(self) -> Matrix | None:
        if self.weight_format is None or self.format.block == 1:
            return None
        return np.frombuffer(self.content, self.format.dtype).reshape(len(self), -1)

    def __getitem__(self, rows: slice) -> Matrix:
        """Some rows, which are whole blocks; the numbers of a vector are not."""
        if self.ndim < 2:
            return super().__getitem__(rows)
        start, stop, _ = rows.indices(len(self))
        width = len(self.content) // len(self)  # bytes of a row
        content = self.content[start * width : stop * width]
        return Stored(self.format, (max(0, stop - start), *self.shape[1:]), content)  # type: ignore[return-value]


def read(path: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """The settings and the tensors of a file."""
    cursor, metadata, tensors = _settings(path)
    return metadata, _tensors(cursor, tensors, metadata.get("general.alignment", ALIGNMENT))


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a file, whatever its tensors are."""
    return _settings(path)[1]


def _settings(path: Path) -> tuple[Cursor, dict[str, Any], int]:
    """The settings of a file, the place after them, and the number of tensors that follow."""
    cursor = Cursor(map_file(path))
    if bytes(cursor.take(4)) != MAGIC:
        raise FormatError("does not begin with GGUF (must be a GGUF file)")
    version = cursor.unpack("I")
    if version not in VERSIONS:
        raise FormatError(f"GGUF version {version} (must be {' or '.join(map(str, VERSIONS))})")
    tensors, settings = cursor.unpack("QQ")
    _check_count(cursor, tensors, 8 + 4 + 8 + 4 + 8, "tensors")
    _check_count(cursor, settings, 8 + 4 + 1, "settings")
    metadata: dict[str, Any] = {}
    for _ in range(settings):
        name = _name(cursor, metadata)
        metadata[name] = _value(cursor, cursor.unpack("I"))
    return cursor, metadata, tensors


def write(path: Path, metadata: Mapping[str, Any], arrays: Mapping[str, tuple[Format, Matrix]]) -> None:
    """Write a file, array by array; each comes with its format."""
    offset = 0
    with new_file(path) as file:
        file.write(MAGIC + struct.pack("<IQQ", VERSIONS[-1], len(arrays), len(metadata)))
        for name, value in metadata.items():
            file.write(_text(name) + _pack(value))
        for name, (format, array) in arrays.items():
            file.write(_text(name) + struct.pack("<I", array.ndim))
            file.write(struct.pack(f"<{array.ndim}QIQ", *reversed(array.shape), format.number, offset))
            size = format.bytes_of(name, array.shape)
            offset += size + -size % ALIGNMENT
        file.write(bytes(-file.tell() % ALIGNMENT))
        for format, array in arrays.values():
            content = format.encode(array)
            file.write(content + bytes(-len(content) % ALIGNMENT))


def _check_count(cursor: Cursor, count: int, least: int, what: str) -> None:
    """Refuse a count that the rest of the file cannot hold."""
    if count * least > cursor.rest:
        raise FormatError(f"{count} {what} in {cursor.rest} bytes ({CUT})")


def _name(cursor: Cursor, known: Mapping[str, Any]) -> str:
    size = cursor.unpack("Q")
    if not 1 <= size <= LONGEST_NAME:
        raise FormatError(f"a name of {size} bytes (must be from 1 to {LONGEST_NAME})")
    name = cursor.text(size)
    if name in known:
        raise FormatError(f"{name!r} occurs twice (each name must occur once)")
    return name


def _value(cursor: Cursor, kind: int) -> Any:
    if kind in NUMBERS:
        value = cursor.unpack(NUMBERS[kind])
        return float(str(np.float32(value))) if kind == 6 else value  # 1e-05, not 9.99999974e-06
    if kind == STRING:
        return cursor.text(cursor.unpack("Q"))
    if kind != ARRAY:
        raise FormatError(f"a setting of type {kind} (must be a number, a string or an array of these)")
    kind, count = cursor.unpack("IQ")
    if kind in NUMBERS:
        return cursor.array(f"<{NUMBERS[kind]}", count)
    if kind != STRING:
        raise FormatError(f"an array of type {kind} (must be of numbers or strings)")
    _check_count(cursor, count, 8, "strings")
    return [cursor.text(cursor.unpack("Q")) for _ in range(count)]


def _tensors(cursor: Cursor, count: int, alignment: Any) -> dict[str, Stored]:
    if type(alignment) is not int or not 1 <= alignment <= 1 << 16:
        raise FormatError(f"general.alignment is {alignment!r} (must be a number from 1 to 65536)")
    entries: dict[str, tuple[Format, tuple[int, ...], int]] = {}
    for _ in range(count):
        name = _name(cursor, entries)
        axes = cursor.unpack("I")
        if not 1 <= axes <= 4:
            raise FormatError(f"{name!r} has {axes} axes (must be from 1 to 4)")
        shape = tuple(cursor.unpack("Q") for _ in range(axes))[::-1]
        number, offset = cursor.unpack("IQ")
        if number not in FORMATS:
            known = ", ".join(format.name for format in FORMATS.values())
            raise FormatError(
                f"{name!r} has the format {REFUSED.get(number, number)} (must be one of {known})"
            )
        entries[name] = FORMATS[number], shape, offset
    cursor.take(-cursor.at % alignment if count else 0)
    data, end, found = cursor.take(cursor.rest), 0, {}
    for name, (format, shape, offset) in sorted(entries.items(), key=lambda item: item[1][2]):
        size = format.bytes_of(name, shape)
        if offset % alignment or not end <= offset <= offset + size <= len(data):
            raise FormatError(
                f"{name!r} of shape {shape} ({format.name}) at {offset} of {len(data)} bytes (does not fit: {CUT})"
            )
        found[name] = Stored(format, shape, data[offset : offset + size])
        end = offset + size
    return found


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _pack(value: Any) -> bytes:
    """The type of a setting and its value."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    if isinstance(value, np.ndarray):
        kind = {"f": 6, "i": 5}[value.dtype.kind]
        content = value.astype("<f4" if kind == 6 else "<i4").tobytes()
        return struct.pack("<IIQ", ARRAY, kind, len(value)) + content
    return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_text, value))
