"""Weight formats of inference: how many bits a weight takes, and how it is rounded to fit.

    fp32   as it is
    bf16   the upper 16 bits of the float32, rounded to nearest, ties to even
    fp16   the nearest half, ties to even; up to 65,504
    int8   groups of 32 inputs share a scale; weight = (code - 128) · scale, codes 1 to 255         8.5 bits
    int4   the same with weight = (code - 8) · scale, codes 0 to 15                                   4.5 bits
    q8_0   blocks of GGUF (io/gguf/blocks.py): weight = code · scale, codes -127 to 127             8.5 bits
    q4_0   the same with weight = (code - 8) · scale, codes 0 to 15                                   4.5 bits
    q4_1   the same with weight = code · scale + least                                                5 bits

What a GGUF file has in q5_0, q5_1, q4_k, q5_k or q6_k stays so, block by block; nothing is rounded to these.
Scales of int8 and int4 are bf16. The product of a code and a scale is exact in float32, so these formats are only a way
to store numbers: a model in int8 computes exactly what a float32 model with its rounded weights computes. Scales of
blocks are fp16, and with them the extension multiplies integers: it rounds what enters a matmul to 8 bits, with a scale
for each 32 numbers. NumPy rounds the weights alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.autograd import Param
from chainrule.autograd.stored import StoredParam
from chainrule.autograd.types import Array
from chainrule.errors import ChainruleError, ConfigError
from chainrule.trace.terms import numbers
from chainrule.types import CacheFormat, WeightFormat

if TYPE_CHECKING:
    from chainrule.io.gguf.blocks import Format

Floats: TypeAlias = npt.NDArray[np.float32]
Words: TypeAlias = npt.NDArray[np.int32]

FORMATS = get_args(WeightFormat)
FILE_FORMATS = ("q5_0", "q5_1", "q4_k", "q5_k", "q6_k")  # of matrices that a file has so, never rounded to
CODES = {name: code for code, name in enumerate((*FORMATS, *FILE_FORMATS))}  # as in native/decode/panels.hpp
BLOCKS = ("q8_0", "q4_0", "q4_1")  # those of GGUF that weights are rounded to
CACHES = get_args(CacheFormat)  # formats of a KV cache, as in native/decode/decode.hpp
STORED = "stored"  # each matrix in the format that has its numbers as its file has them
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "int8": 8, "int4": 4}  # of a code
PANEL = GROUP = 32  # as in native/decode/panels.hpp


def check_format(name: str) -> str:
    """`name`, if it is a format"""
    if name not in (*FORMATS, STORED):
        raise ConfigError(f"weights: {name!r} (must be one of {', '.join((*FORMATS, STORED))})")
    return name


def check_cache(name: str) -> str:
    """`name`, if it is a format of a KV cache"""
    if name not in CACHES:
        raise ConfigError(f"cache: {name!r} (must be one of {', '.join(CACHES)})")
    return name


def format_of(parts: Sequence[Param | Array], name: str) -> str:
    """The format of matrices that are packed as one: `name`, or if that is `STORED` the one they are stored in"""
    if name != STORED:
        return name
    found = {part.stored_format if isinstance(part, StoredParam) else None for part in parts}
    return (found.pop() if len(found) == 1 else None) or "fp32"


def by_format(parts: Sequence[Param | Array], name: str) -> list[tuple[str, list[Param | Array]]]:
    """Matrices one above the other -> runs of them that share a format, each of whole panels but for the last

    A file may have the values of an attention in more bits than its queries and keys. If a run ends inside a panel, all
    are one in fp32.
    """
    runs = [(format, list(run)) for format, run in groupby(parts, lambda part: format_of((part,), name))]
    whole = all(sum(map(len, run)) % PANEL == 0 for _, run in runs[:-1])
    return runs if whole else [("fp32", list(parts))]


def rounded(weight: Floats, name: str) -> Floats:
    """weight (out, in) -> the float32 numbers that the format keeps of it"""
    if name == "fp32":
        return weight
    if name == "fp16":
        return weight.astype(np.float16).astype(np.float32)
    if name == "bf16":
        return from_bf16(to_bf16(weight))
    padded = pad(weight)
    if name in BLOCKS:
        format = block_format(name)
        full = format.decode(memoryview(format.encode(padded)))
    else:
        codes, scales = quantize(padded, 8 if name == "int8" else 4)
        full = (codes - np.float32(middle(name))) * scales[..., None]
    return full.reshape(padded.shape)[: weight.shape[0], : weight.shape[1]]


def block_format(name: str) -> Format:
    """The format of GGUF that a format in blocks is"""
    from chainrule.io.gguf import blocks

    return next(format for format in blocks.FORMATS.values() if format.name.lower() == name)


def pack(parts: Sequence[Param | Array], name: str) -> Words:
    """Matrices (out, in), one above the other -> words as native/decode/panels.hpp describes them

    They are read one at a time, so that a model need not be in memory to be packed. What is stored in blocks of this
    format goes over byte by byte.
    """
    outputs, inputs, code = sum(len(part) for part in parts), parts[0].shape[1], CODES[name]
    padded = outputs + -outputs % PANEL
    words = native.empty((padded // PANEL * panel_words(name, inputs),), np.int32)  # aligned, in huge pages
    first = 0
    for part in (*parts, np.zeros((padded - outputs, inputs), np.float32)):
        blocks = part.blocks(name) if isinstance(part, StoredParam) else None
        if name in FILE_FORMATS and first == outputs:  # where all bytes 0 mean weights of 0
            blocks = np.zeros(
                (len(part), inputs // (format := block_format(name)).block * format.dtype.itemsize), np.uint8
            )
        if blocks is not None:
            native.kernels().panels_pack_blocks(words, blocks, code, first, padded)
        else:
            rows = np.require(numbers(part), np.float32, ("C", "A"))
            if not native.kernels().panels_pack(words, rows, code, first, padded):
                raise not_finite(name)
        first += len(part)
    return words


def panel_words(name: str, inputs: int) -> int:
    """Words of a panel of so many inputs"""
    if name in (*BLOCKS, *FILE_FORMATS):
        format = block_format(name)
        return -(-inputs // format.block) * format.dtype.itemsize * PANEL // 4
    scales = PANEL // 2 if name.startswith("int") else 0
    return -(-inputs // GROUP) * (BITS[name] * PANEL + scales)


def not_finite(name: str) -> ChainruleError:
    what = "not finite, or too large" if name in (*BLOCKS, "fp16") else "not finite"
    return ChainruleError(f"Decoder: the model's weights are {what}, {name} cannot hold them")


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
