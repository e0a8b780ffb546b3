"""The file of arrays: whole, checked before anything is allocated, and the same that Hugging Face's library reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import DataError, FormatError
from chainrule.io import safetensors

RNG = np.random.default_rng(0)
ARRAYS = {
    "strided": RNG.normal(size=(3, 4)).astype(np.float32).T,
    "sliced": RNG.normal(size=(6, 8))[::2, 1::3],
    "reversed": np.arange(5, dtype=np.int64)[::-1],
    "empty": np.zeros((0, 3), np.float16),
    "scalar": np.array(7, np.uint8),
    "flags": np.array([True, False]),
}


def test_arrays_of_any_layout_come_back() -> None:
    content = safetensors.encode(ARRAYS)
    for read in (safetensors.decode(content), peer.load(content)):
        assert read.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert read[name].dtype == array.dtype and read[name].shape == array.shape
            np.testing.assert_array_equal(read[name], array)


def test_the_bytes_are_those_of_hugging_face_s_library(tmp_path: Path) -> None:
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
    arrays = {f'{kind} "é\n': RNG.normal(size=(3, 2)).astype(kind) for kind in kinds}
    arrays |= {name: np.asarray(array, order="C") for name, array in ARRAYS.items()}
    for some in (arrays, {}):
        want = peer.save(some, metadata={"format": "pt"})
        assert safetensors.encode(some) == want
        with (tmp_path / "x").open("wb") as file:
            safetensors.write(file, some)
        assert (tmp_path / "x").read_bytes() == want


def test_bfloat16_becomes_float32() -> None:
    values = np.array([0.0, 1.0, -2.5, 3.140625, np.inf], np.float32)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    content = safetensors.encode({"x": bits}).replace(b'"U16"', b'"BF16"')
    longer = int.from_bytes(content[:8], "little") + 1
    read = safetensors.decode(longer.to_bytes(8, "little") + content[8:])["x"]
    assert read.dtype == np.float32 and (read == values).all()


def file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape: Any = (2,), place: Any = (0, 8), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": place}


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "a header of 0 bytes in a file of 0"),
        (b"\xff" * 8, "a header of 18446744073709551615 bytes in a file of 8"),
        (b"\xff" * 100, "a header of 18446744073709551615 bytes"),
        (file(b"{{"), "header: is not JSON"),
        (file(b"[1]"), "header: holds a list"),
        (file(b"[" * 100_000), "header: is not JSON"),
        (file(b'{"a": {}, "a": {}}'), "'a' occurs twice"),
        (file({"a": 3}), "'a' is not an array"),
        (file({"a": entry() | {"more": 1}}, bytes(8)), "'a' is not an array"),
        (file({"a": entry(dtype="F31")}, bytes(8)), "'a' has dtype 'F31'"),
        (file({"a": entry(dtype=[])}, bytes(8)), "'a' has dtype"),
        (file({"a": entry((-2, -1))}, bytes(8)), "lists of natural numbers"),
        (file({"a": entry((2.0,))}, bytes(8)), "lists of natural numbers"),
        (file({"a": entry((2**32, 2**32))}, bytes(8)), "does not fit"),
        (file({"a": entry((2**63,))}, bytes(8)), "lists of natural numbers"),
        (file({"a": entry((3,))}, bytes(8)), "does not fit"),
        (file({"a": entry((2,), (0, 9))}, bytes(9)), "does not fit"),
        (file({"a": entry((2,), (8, 0))}, bytes(8)), "does not fit"),
        (file({"a": entry((2,), (8, 16))}, bytes(8)), "does not fit"),
        (file({"a": entry(place=(0, 8, 8))}, bytes(8)), "lists of natural numbers"),
        (file({"a": entry(), "b": entry()}, bytes(8)), "must be adjacent"),
        (file({"a": entry(), "b": entry(place=(12, 20))}, bytes(20)), "must be adjacent"),
        (file({"a": entry()}, bytes(9)), "arrays end at byte 8 of 9 bytes of data"),
    ],
)
def test_what_is_no_such_file_is_refused(content: bytes, rule: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=rule) as error:
        safetensors.decode(content)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.safetensors: "):
        safetensors.read(tmp_path / "x.safetensors")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        safetensors.read(tmp_path / "x")


CONTENT = safetensors.encode({"a": RNG.normal(size=(3, 2)).astype(np.float32), "b": np.arange(4)})


@pytest.mark.parametrize("size", range(len(CONTENT)))
def test_every_cut_is_noticed(size: int) -> None:
    with pytest.raises(FormatError):
        safetensors.decode(CONTENT[:size])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_gives_arrays_of_the_file(place: int, change: int) -> None:
    content = bytearray(CONTENT)
    content[place] ^= change
    try:
        arrays = safetensors.decode(bytes(content))
    except FormatError:
        return
    assert sum(array.nbytes for array in arrays.values()) <= 2 * len(content)  # bfloat16 takes twice as much
