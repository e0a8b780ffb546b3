"""The wire format of Protocol Buffers, good and damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import FormatError
from chainrule.io.protobuf import Message, fields


def test_fields_of_every_type() -> None:
    content = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d" + struct.pack("<f", 1.5) + b"\x21" + bytes(8)
    found = {n: v if isinstance(v, int) else bytes(v) for n, v in fields(memoryview(content))}
    assert found == {1: 150, 2: b"abc", 3: struct.pack("<f", 1.5), 4: bytes(8)}
    message = Message(memoryview(content))
    assert (message.integer(1, 0), message.text(2), message.float(3)) == (150, "abc", 1.5)
    assert (message.integer(9, 7), message.flag(9, True), message.bytes(9), message.float(9)) == (
        7,
        True,
        b"",
        0.0,
    )
    assert Message(memoryview(b"\x08" + b"\xff" * 9 + b"\x01")).integer(1, 0) == -1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x08", "no integer at byte 1"),
        (b"\x08" + b"\xff" * 11, "no integer"),
        (b"\x12\x05ab", "5 bytes at 2 of 4"),
        (b"\x12\xff\xff\xff\xff\x0f", "bytes at"),
        (b"\x0b", "field 1 of type 3"),
        (b"\x02\x00", "field 0 of type 2"),
        (b"\x00\x00", "field 0 of type 0"),
    ],
)
def test_damage_is_named(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        list(fields(memoryview(content)))


def test_values_of_another_type_are_named() -> None:
    message = Message(memoryview(b"\x08\x01" + b"\x12\x01\xff"))
    for wrong in (lambda: message.integer(2, 0), lambda: message.bytes(1), lambda: message.text(2)):
        with pytest.raises(FormatError, match="the file is cut or damaged: get it again"):
            wrong()
    with pytest.raises(FormatError, match="must be a float of 4"):
        message.float(2)


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_one_line(content: bytes) -> None:
    try:
        assert sum(1 for _ in fields(memoryview(content))) <= len(content)
    except FormatError as error:
        assert "\n" not in str(error)
