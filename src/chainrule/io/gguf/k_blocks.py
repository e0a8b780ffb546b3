"""GGUF's blocks of 256 numbers, "k-quants": groups with small scales of their own, and one scale for the scales.

    Q4_K    scale, min, 8 scales and 8 mins of six bits, 128 bytes of two        x = scale · s · q - min · m
    Q5_K    the same, and 32 bytes with the fifth bit of each number
    Q6_K    128 bytes of two, 64 of upper bits, 16 scales (int8), scale          x = scale · s · (q - 32)

Groups are 32 numbers in Q4_K and Q5_K, 16 in Q6_K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Blocks = npt.NDArray[Any]

K_BLOCK = 256
K_FOUR = np.dtype([("scale", "<f2"), ("least", "<f2"), ("small", "u1", 12), ("q", "u1", 128)])
K_FIVE = np.dtype(
    [("scale", "<f2"), ("least", "<f2"), ("small", "u1", 12), ("upper", "u1", 32), ("q", "u1", 128)]
)
K_SIX = np.dtype([("q", "u1", 128), ("upper", "u1", 64), ("small", "i1", 16), ("scale", "<f2")])


def pieces(content: Bytes, bits: int, width: int) -> Bytes:
    """Numbers of `bits` bits: the lowest bits of `width` bytes, then the next bits of the same bytes."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    groups = content.reshape(len(content), -1, 1, width)
    found: Bytes = (groups >> shifts[:, None]) & np.uint8(2**bits - 1)
    return found.reshape(len(content), -1)


def k_four(blocks: Blocks) -> Floats:
    return _from_least(blocks, pieces(blocks["q"], 4, 32))


def k_five(blocks: Blocks) -> Floats:
    return _from_least(blocks, pieces(blocks["q"], 4, 32) | (pieces(blocks["upper"], 1, 32) << np.uint8(4)))


def k_six(blocks: Blocks) -> Floats:
    q = pieces(blocks["q"], 4, 64) | (pieces(blocks["upper"], 2, 32) << np.uint8(4))
    scales = blocks["scale"].astype(np.float32)[:, None] * blocks["small"]
    return _grouped(scales, q.astype(np.float32) - 32)


def _from_least(blocks: Blocks, q: Bytes) -> Floats:
    scale, least = (blocks[name].astype(np.float32)[:, None] for name in ("scale", "least"))
    scales, leasts = _six_bits(blocks["small"])
    return _grouped(scale * scales, q) - np.repeat(least * leasts, K_BLOCK // 8, axis=1)


def _six_bits(small: Bytes) -> tuple[Bytes, Bytes]:
    """8 scales and 8 mins in 12 bytes: the first four of each are the lower six bits of four bytes; the others take the
    two upper bits of these and half a byte of the last four."""
    first, second, rest = np.split(small, 3, axis=1)
    scales = [first & 63, (rest & 15) | (first >> 6 << 4)]
    leasts = [second & 63, (rest >> 4) | (second >> 6 << 4)]
    return np.concatenate(scales, axis=1), np.concatenate(leasts, axis=1)


def _grouped(scales: Floats, q: npt.NDArray[Any]) -> Floats:
    """Each group of q (n, 256) times its scale."""
    n, groups = scales.shape
    product: Floats = scales[..., None] * q.reshape(n, groups, -1)
    return product.reshape(n, -1)
