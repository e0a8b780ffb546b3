"""The wire format of Protocol Buffers: fields with a number, each a varint, 4 or 8 bytes, or a length and its bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from chainrule.errors import FormatError
from chainrule.io.files import CUT

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
LONGEST_VARINT = 10  # bytes

Value = int | memoryview


def fields(content: memoryview) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field of a message: an integer, or the bytes of a text, a message or a float."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, kind = key >> 3, key & 7
        if not number or kind not in (VARINT, EIGHT, BYTES, FOUR):
            raise FormatError(
                f"field {number} of type {kind} at byte {at} (is not Protocol Buffers, or damaged)"
            )
        if kind == VARINT:
            value, at = _varint(content, at)
            yield number, value
            continue
        size, at = _varint(content, at) if kind == BYTES else ({EIGHT: 8, FOUR: 4}[kind], at)
        if size > len(content) - at:
            raise FormatError(f"{size} bytes at {at} of {len(content)} ({CUT})")
        yield number, content[at : at + size]
        at += size


class Message:
    """The fields of a message by number; of a repeated one the last counts."""

    def __init__(self, value: Value) -> None:
        self.values = dict(fields(_bytes(value)))

    def integer(self, number: int, default: int) -> int:
        value = self.values.get(number, default)
        if not isinstance(value, int):
            raise FormatError(f"field {number} is not an integer ({CUT})")
        return value - (1 << 64) if value >> 63 else value

    def flag(self, number: int, default: bool) -> bool:
        return bool(self.integer(number, default))

    def bytes(self, number: int) -> bytes:
        return bytes(_bytes(self.values.get(number, memoryview(b""))))

    def text(self, number: int) -> str:
        try:
            return self.bytes(number).decode()
        except UnicodeDecodeError:
            raise FormatError(f"field {number} is not UTF-8 ({CUT})") from None

    def float(self, number: int) -> float:
        value = self.bytes(number)
        if len(value) not in (0, 4):
            raise FormatError(f"field {number} has {len(value)} bytes (must be a float of 4)")
        return float(struct.unpack("<f", value)[0]) if value else 0.0


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """The integer at `at`, and where it ends."""
    value = 0
    for place, byte in enumerate(content[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise FormatError(f"no integer at byte {at} ({CUT})")


def _bytes(value: Value) -> memoryview:
    if isinstance(value, int):
        raise FormatError(f"an integer where bytes are expected ({CUT})")
    return value
