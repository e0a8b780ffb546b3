"""SentencePiece models, written for tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = range(1, 5)

Piece = tuple[str, float, int]  # text, score, type


def varint(value: int) -> bytes:
    rest = b""
    while value >= 0x80:
        rest += bytes([value & 0x7F | 0x80])
        value >>= 7
    return rest + bytes([value])


def field(number: int, value: int | float | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(values: dict[int, int | float | bytes]) -> bytes:
    return b"".join(field(number, value) for number, value in values.items())


def model(
    pieces: Sequence[Piece],
    *,
    kind: int = BPE,
    trainer: dict[int, int | float | bytes] | None = None,
    normalizer: dict[int, int | float | bytes] | None = None,
    more: bytes = b"",
) -> bytes:
    """The content of a file; `trainer` and `normalizer` are fields by number."""
    listed = [field(1, message({1: text.encode(), 2: score, 3: type})) for text, score, type in pieces]
    specs = field(2, message({3: kind} | (trainer or {}))) + field(3, message(normalizer or {}))
    return b"".join(listed) + specs + more
