"""Hugging Face's `safetensors`: named arrays in one file, as a length, a JSON header, and the bytes of all arrays.

Reading maps the file into memory and returns views of it. Nothing is allocated for an array before its place and size
are known to lie in the file, and no content is executed. Writing goes array by array.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from chainrule.errors import FormatError
from chainrule.files import json_value
from chainrule.io.binary import map_file, widen_bf16
from chainrule.io.files import CUT, naming
from chainrule.io.lazy import Arrays as Arrays
from chainrule.io.lazy import Lazy, Matrix

# In the order in which Hugging Face's own writer lays them out.
DTYPES = {
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4", "BF16": "<u2", "F16": "<f2",
    "U16": "<u2", "I16": "<i2", "I8": "<i1", "U8": "<u1", "BOOL": "?",
}  # fmt: skip
NAMES = {np.dtype(kind): name for name, kind in DTYPES.items() if name != "BF16"}
LONGEST_HEADER = 100_000_000  # bytes, as in Hugging Face's own reader


def encode(arrays: Mapping[str, Matrix]) -> bytes:
    """The content of a file."""
    return b"".join(parts(arrays))


def write(file: IO[bytes], arrays: Mapping[str, Matrix]) -> None:
    """The same, written array by array."""
    for part in parts(arrays):
        file.write(part)


def parts(arrays: Mapping[str, Matrix]) -> Iterator[bytes | memoryview]:
    """The header, then the bytes of each array; every saved array passes through here."""
    places = list(DTYPES)
    kinds = {name: NAMES[array.dtype.newbyteorder("<")] for name, array in arrays.items()}
    order = sorted(arrays, key=lambda name: (places.index(kinds[name]), name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # `transformers` requires it
    end = 0
    for name in order:
        start, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": kinds[name], "shape": arrays[name].shape, "data_offsets": (start, end)}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        # The file holds plain memory: a strided array would be scrambled.
        yield np.asarray(arrays[name], DTYPES[kinds[name]], order="C").reshape(-1).view(np.uint8).data


def read(path: Path) -> Arrays:
    """The arrays of a file, mapped into memory."""
    with naming(path):
        return decode(map_file(path))


def decode(content: bytes | memoryview) -> Arrays:
    """The arrays in the content of a file, read-only views of it; bfloat16 becomes float32 when it is read."""
    header, data = _header(memoryview(content))
    header.pop("__metadata__", None)
    arrays, places = {}, []
    for name, entry in header.items():
        arrays[name], place = _array(name, entry, data)
        places.append(place)
    end = 0
    for start, stop in sorted(places):
        if start != end:
            raise FormatError(f"arrays end at byte {end}, the next begins at {start} (must be adjacent)")
        end = stop
    if end != len(data):
        raise FormatError(f"arrays end at byte {end} of {len(data)} bytes of data (must be equal)")
    return arrays


def _header(content: memoryview) -> tuple[dict[str, Any], memoryview]:
    """The JSON object at the beginning, and the bytes after it."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or not 2 <= size <= min(LONGEST_HEADER, len(content) - 8):
        raise FormatError(
            f"a header of {size} bytes in a file of {len(content)} (must be a safetensors file)"
        )
    try:
        return json_value(bytes(content[8 : 8 + size]), once=once), content[8 + size :]
    except FormatError as error:
        raise FormatError(f"header: {error}") from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names occur once; by default the last of equal names would win."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise FormatError(f"{name!r} occurs twice (each name must occur once)")
        found[name] = value
    return found


def _array(name: str, entry: Any, data: memoryview) -> tuple[Matrix, tuple[int, int]]:
    """One array, and where its bytes begin and end."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{name!r} is not an array (must have dtype, shape and data_offsets)")
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(f"{name!r} has dtype {dtype!r} (must be one of {', '.join(DTYPES)})")
    if not (_naturals(shape) and len(shape) <= 8 and _naturals(place) and len(place) == 2):
        raise FormatError(f"{name!r} has shape {shape!r} at {place!r} (must be lists of natural numbers)")
    start, stop = place
    kind = np.dtype(DTYPES[dtype])
    if not start <= stop <= len(data) or stop - start != math.prod(shape) * kind.itemsize:
        raise FormatError(
            f"{name!r} of shape {shape} ({dtype}) in bytes {start} to {stop} of {len(data)} (does not fit: {CUT})"
        )
    array = np.frombuffer(data[start:stop], kind).reshape(shape)
    found: Any = Lazy(array.shape, lambda: widen_bf16(array)) if dtype == "BF16" else array
    return found, (start, stop)


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)
