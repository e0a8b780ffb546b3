"""Hugging Face's `safetensors`: named arrays in one file, as a length, a JSON header, and the bytes of all arrays.

Reading maps the file into memory and returns views of it. Nothing is allocated for an array before its place and size
are known to lie in the file, and no content is executed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from chainrule.errors import FormatError
from chainrule.io.binary import map_file, widen_bf16

Arrays = dict[str, npt.NDArray[Any]]

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip
LONGEST_HEADER = 100_000_000  # bytes, as in Hugging Face's own reader


def encode(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The content of a file; every saved array passes through here."""
    # The library writes raw memory: a strided array would be scrambled.
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return save(whole, metadata={"format": "pt"})  # `transformers` requires it


def read(path: Path) -> Arrays:
    """The arrays of a file, mapped into memory."""
    try:
        return decode(map_file(path))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


def decode(content: bytes | memoryview) -> Arrays:
    """The arrays in the content of a file, read-only views of it; bfloat16 becomes float32."""
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
        raise FormatError(f"arrays of {end} bytes in a file with {len(data)} (must be as many)")
    return arrays


def _header(content: memoryview) -> tuple[dict[str, Any], memoryview]:
    """The JSON object at the beginning, and the bytes after it."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or not 2 <= size <= min(LONGEST_HEADER, len(content) - 8):
        raise FormatError(
            f"a header of {size} bytes in a file of {len(content)} (must be a safetensors file)"
        )
    try:
        header = json.loads(bytes(content[8 : 8 + size]), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the header is not valid JSON ({error})") from error
    if not isinstance(header, dict):
        raise FormatError(f"the header is a {type(header).__name__} (must be an object)")
    return header, content[8 + size :]


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names occur once; by default the last of equal names would win."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise FormatError(f"{name!r} occurs twice (each name must occur once)")
        found[name] = value
    return found


def _array(name: str, entry: Any, data: memoryview) -> tuple[npt.NDArray[Any], tuple[int, int]]:
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
            f"{name!r} of shape {shape} ({dtype}) in bytes {start} to {stop} of {len(data)} (does not fit)"
        )
    array = np.frombuffer(data[start:stop], kind).reshape(shape)
    return widen_bf16(array) if dtype == "BF16" else array, (start, stop)


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)
