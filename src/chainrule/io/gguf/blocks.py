"""How GGUF stores numbers: one by one, in blocks of 32 with a scale, or in blocks of 256 (`k_blocks`).

    Q8_0    scale (float16), 32 int8                         x = scale · q
    Q4_0    scale, 16 bytes of two numbers                   x = scale · (q - 8)
    Q4_1    scale, min, 16 bytes of two                      x = scale · q + min
    Q5_0    scale, 32 fifth bits, 16 bytes of two            x = scale · (q - 16)
    Q5_1    scale, min, 32 fifth bits, 16 bytes of two       x = scale · q + min

The lower half of a byte is number i of the block, the upper half number i + 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.io.binary import widen_bf16
from chainrule.io.gguf.k_blocks import K_BLOCK, K_FIVE, K_FOUR, K_SIX, k_five, k_four, k_six, pieces

Floats = npt.NDArray[np.float32]
Blocks = npt.NDArray[Any]

BLOCK = 32
AT_ONCE = 1 << 16  # numbers that are converted at once: what is computed on the way stays in the cache


@dataclass(frozen=True)
class Format:
    """A format: `dtype` describes a block of `block` numbers."""

    name: str
    number: int
    block: int
    dtype: np.dtype[Any]
    unpack: Callable[[Blocks], Floats]
    pack: Callable[[Floats], Blocks] | None = None

    def bytes_of(self, name: str, shape: tuple[int, ...]) -> int:
        """The size of a tensor in bytes; blocks do not cross its rows."""
        if shape[-1] % self.block or not all(0 < n < 2**40 for n in shape):
            raise FormatError(
                f"{name!r} has shape {shape} "
                f"(for {self.name} sizes must be from 1 to 2**40, the last a multiple of {self.block})"
            )
        return math.prod(shape) // self.block * self.dtype.itemsize

    def decode(self, content: memoryview) -> Floats:
        """All numbers, flat."""
        blocks = np.frombuffer(content, self.dtype)
        if self.block == 1:
            return self.unpack(blocks).astype(np.float32, copy=False)
        found = np.empty((len(blocks), self.block), np.float32)
        for some in _slices(len(blocks), self.block):
            found[some] = self.unpack(blocks[some])
        return found.ravel()

    def encode(self, array: npt.NDArray[Any]) -> bytes:
        if self.pack is None:
            raise FormatError(f"gguf: {self.name} is only read (write F32, Q8_0, Q4_0 or Q4_1)")
        rows = np.asarray(array, np.float32).reshape(-1, self.block)
        return b"".join(self.pack(rows[some]).tobytes() for some in _slices(len(rows), self.block))


def _slices(blocks: int, size: int) -> Iterator[slice]:
    step = AT_ONCE // size
    return (slice(start, start + step) for start in range(0, blocks, step))


def _eight(blocks: Blocks) -> Floats:
    return blocks["scale"].astype(np.float32)[:, None] * blocks["q"]


def _to_eight(rows: Floats) -> Blocks:
    """scale = largest magnitude of the block / 127"""
    scale = np.abs(rows).max(axis=1) / 127
    q = np.rint(rows / np.where(scale > 0, scale, 1)[:, None])
    blocks = np.zeros(len(rows), EIGHT)
    blocks["scale"], blocks["q"] = scale, q
    return blocks


def _four(blocks: Blocks) -> Floats:
    return blocks["scale"].astype(np.float32)[:, None] * (_codes(blocks) - 8)


def _to_four(rows: Floats) -> Blocks:
    """scale = what has the largest magnitude of the block / -8: with its sign it becomes code 0"""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    scale = largest / np.float32(-8)
    blocks = np.zeros(len(rows), FOUR)
    blocks["scale"] = scale[:, 0]
    blocks["q"] = _in_halves(rows / np.where(scale == 0, np.float32(1), scale) + np.float32(8.5))
    return blocks


def _five(blocks: Blocks) -> Floats:
    return blocks["scale"].astype(np.float32)[:, None] * (_codes(blocks) - 16)


def _from_least(blocks: Blocks) -> Floats:
    scale, least = (blocks[name].astype(np.float32)[:, None] for name in ("scale", "least"))
    return scale * _codes(blocks) + least


def _to_four_from_least(rows: Floats) -> Blocks:
    """scale = (largest - least) / 15"""
    least = rows.min(axis=1, keepdims=True) + np.float32(0)  # 0 without a sign
    scale = (rows.max(axis=1, keepdims=True) - least) / np.float32(15) + np.float32(0)
    blocks = np.zeros(len(rows), FOUR_FROM_LEAST)
    blocks["scale"], blocks["least"] = scale[:, 0], least[:, 0]
    blocks["q"] = _in_halves((rows - least) / np.where(scale == 0, np.float32(1), scale) + np.float32(0.5))
    return blocks


def _in_halves(codes: npt.NDArray[Any]) -> Blocks:
    """Codes (n, 32), rounded down to four bits -> the bytes of their blocks (n, 16)"""
    q = np.clip(codes, 0, 15).astype(np.uint8)
    return q[:, : BLOCK // 2] | q[:, BLOCK // 2 :] << 4


def _codes(blocks: Blocks) -> Floats:
    """The numbers q of four bits, or of five if the blocks have fifth bits."""
    q = pieces(blocks["q"], 4, BLOCK // 2)
    if "fifth" in (blocks.dtype.names or ()):
        q |= pieces(blocks["fifth"], 1, 1) << 4
    return q.astype(np.float32)


EIGHT = np.dtype([("scale", "<f2"), ("q", "i1", BLOCK)])
FOUR = np.dtype([("scale", "<f2"), ("q", "u1", BLOCK // 2)])
FIVE = np.dtype([("scale", "<f2"), ("fifth", "u1", BLOCK // 8), ("q", "u1", BLOCK // 2)])
FOUR_FROM_LEAST = np.dtype([("scale", "<f2"), ("least", "<f2"), ("q", "u1", BLOCK // 2)])
FIVE_FROM_LEAST = np.dtype(
    [("scale", "<f2"), ("least", "<f2"), ("fifth", "u1", BLOCK // 8), ("q", "u1", BLOCK // 2)]
)

F32 = Format("F32", 0, 1, np.dtype("<f4"), np.asarray, np.asarray)
Q8_0 = Format("Q8_0", 8, BLOCK, EIGHT, _eight, _to_eight)
Q4_0 = Format("Q4_0", 2, BLOCK, FOUR, _four, _to_four)
Q4_1 = Format("Q4_1", 3, BLOCK, FOUR_FROM_LEAST, _from_least, _to_four_from_least)
FORMATS = {
    format.number: format
    for format in (
        F32,
        Format("F16", 1, 1, np.dtype("<f2"), np.asarray),
        Q4_0,
        Q4_1,
        Format("Q5_0", 6, BLOCK, FIVE, _five),
        Format("Q5_1", 7, BLOCK, FIVE_FROM_LEAST, _from_least),
        Q8_0,
        Format("Q4_K", 12, K_BLOCK, K_FOUR, k_four),
        Format("Q5_K", 13, K_BLOCK, K_FIVE, k_five),
        Format("Q6_K", 14, K_BLOCK, K_SIX, k_six),
        Format("BF16", 30, 1, np.dtype("<u2"), widen_bf16),
    )
}
# Refused by name, so that the reader knows which file to look for instead.
REFUSED = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64",
    28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0",
}  # fmt: skip
