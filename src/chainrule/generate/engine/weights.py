"""Weight formats of inference: how many bits a weight takes, and how it is rounded to fit.

    fp32   as it is
    bf16   the upper 16 bits of the float32, rounded to nearest, ties to even
    int8   groups of 32 inputs share a scale; weight = (code - 128) · scale, codes 1 to 255         8.5 bits
    int4   the same with weight = (code - 8) · scale, codes 0 to 15                                   4.5 bits

Scales are bf16. The product of a code and a scale is exact in float32, so a format is only a way to store numbers: a
model in int8 computes exactly what a float32 model with its rounded weights computes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError

Floats: TypeAlias = npt.NDArray[np.float32]
Words: TypeAlias = npt.NDArray[np.int32]

FORMATS = ("fp32", "bf16", "int8", "int4")
PANEL = GROUP = 32  # as in native/decode/panels.hpp


def check_format(name: str) -> str:
    """`name`, if it is a format"""
    if name not in FORMATS:
        raise ConfigError(f"weights: {name!r} (must be one of {', '.join(FORMATS)})")
    return name


def rounded(weight: Floats, name: str) -> Floats:
    """weight (out, in) -> the float32 numbers that the format keeps of it"""
    if name == "fp32":
        return weight
    if name == "bf16":
        return from_bf16(to_bf16(weight))
    codes, scales = quantize(pad(weight), 8 if name == "int8" else 4)
    full = (codes - np.float32(middle(name))) * scales[..., None]
    return full.reshape(codes.shape[0], -1)[: weight.shape[0], : weight.shape[1]]


def pack(weight: Floats, name: str) -> Words:
    """weight (out, in) -> words as native/decode/panels.hpp describes them, without their memory's alignment"""
    weight = pad(weight)
    N, K = weight.shape
    if name == "fp32":
        return columns(weight.view(np.int32))
    if name == "bf16":
        halves = to_bf16(weight).reshape(N, K // 2, 2)
        return columns(join(halves, 16))
    bits = 8 if name == "int8" else 4
    codes, scales = quantize(weight, bits)  # (N, K/GROUP, GROUP), (N, K/GROUP)
    words = join(codes.reshape(N, K // GROUP, -1, 32 // bits), bits)
    words = words.reshape(N // PANEL, PANEL, K // GROUP, -1)
    words = words.transpose(0, 2, 3, 1)  # (panel, group, word, output)
    pairs = to_bf16(scales).reshape(N // PANEL, 2, PANEL // 2, K // GROUP)
    heads = join(pairs.transpose(0, 3, 2, 1), 16)  # (panel, group, PANEL/2)
    return np.concatenate([heads, words.reshape(N // PANEL, K // GROUP, -1)], axis=-1).reshape(-1)


def quantize(weight: Floats, bits: int) -> tuple[Floats, Floats]:
    """weight (N, K) -> codes (N, K/GROUP, GROUP) as floats, scales (N, K/GROUP)

    int8 is symmetric. int4 has no code to spare: the largest weight of a group, with its sign, becomes code 0.
    """
    groups = weight.reshape(weight.shape[0], -1, GROUP)
    half = 1 << (bits - 1)
    if bits == 8:
        scales = np.abs(groups).max(axis=-1) / (half - 1)
    else:
        largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=-1)[..., None], axis=-1)[..., 0]
        scales = largest / -half
    scales = outwards_bf16(scales.astype(np.float32))
    safe = np.where(scales == 0, np.float32(1), scales)
    codes = np.clip(np.rint(groups / safe[..., None]) + half, 0, 2 * half - 1)
    return codes.astype(np.float32), scales


def middle(name: str) -> int:
    """The code that stands for 0"""
    return 128 if name == "int8" else 8


def to_bf16(x: Floats) -> npt.NDArray[np.uint32]:
    """The nearest bf16 of each number, as its 16 bits; ties to even, NaN stays NaN"""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), (bits >> 16) | 0x40, nearest).astype(np.uint32)


def from_bf16(bits: npt.NDArray[np.uint32]) -> Floats:
    return (bits << 16).astype(np.uint32).view(np.float32)


def outwards_bf16(x: Floats) -> Floats:
    """The next bf16 that is not nearer to 0: a group's largest weight then stays in reach"""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0xFFFF) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def pad(weight: Floats) -> Floats:
    """(out, in) -> the same with zeros up to whole panels and groups"""
    return np.pad(np.asarray(weight, np.float32), [(0, -n % PANEL) for n in weight.shape])


def join(parts: npt.NDArray[Any], bits: int) -> Words:
    """(..., n) -> (...,): n numbers of `bits` bits in a word, the first one lowest"""
    shifts = np.arange(parts.shape[-1], dtype=np.uint32) * np.uint32(bits)
    return np.bitwise_or.reduce(parts.astype(np.uint32) << shifts, axis=-1).view(np.int32)


def columns(words: Words) -> Words:
    """(N, words of an output) -> flat, in panels whose columns are outputs"""
    return words.reshape(-1, PANEL, words.shape[1]).transpose(0, 2, 1).reshape(-1)
