"""Formats of weights: the panels of the extension hold, bit for bit, what NumPy makes of the same numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd.mode import backend
from chainrule.autograd.stored import StoredParam
from chainrule.errors import ChainruleError
from chainrule.generate.engine.weights import (
    BLOCKS,
    CACHES,
    CODES,
    FORMATS,
    GROUP,
    PANEL,
    STORED,
    Floats,
    Words,
    block_format,
    format_of,
    pack,
    pad,
    panel_words,
    quantize,
    to_bf16,
)  # fmt: skip

pytestmark = pytest.mark.skipif(not native.available(), reason="the extension was not built")


def reference(weight: Floats, name: str) -> Words:
    """weight (out, in) -> words as native/decode/panels.hpp describes them"""
    weight = pad(weight)
    N, K = weight.shape
    if name == "fp32":
        return columns(weight.view(np.int32))
    if name == "bf16":
        return columns(join(to_bf16(weight).reshape(N, K // 2, 2), 16))
    if name == "fp16":
        with np.errstate(over="ignore"):
            halves = weight.astype(np.float16).view(np.uint16)
        return columns(join(halves.reshape(N, K // 2, 2), 16))
    if name in BLOCKS:
        return in_panels(
            np.frombuffer(block_format(name).encode(weight), block_format(name).dtype).reshape(N, -1)
        )
    bits = 8 if name == "int8" else 4
    codes, scales = quantize(weight, bits)  # (N, K/GROUP, GROUP), (N, K/GROUP)
    words = join(codes.reshape(N, K // GROUP, -1, 32 // bits), bits)
    words = words.reshape(N // PANEL, PANEL, K // GROUP, -1)
    words = words.transpose(0, 2, 3, 1)  # (panel, group, word, output)
    pairs = to_bf16(scales).reshape(N // PANEL, 2, PANEL // 2, K // GROUP)
    heads = join(pairs.transpose(0, 3, 2, 1), 16)  # (panel, group, PANEL/2)
    return np.concatenate([heads, words.reshape(N // PANEL, K // GROUP, -1)], axis=-1).reshape(-1)


def in_panels(blocks: npt.NDArray[Any]) -> Words:
    """blocks (N, K/GROUP) of GGUF -> panels: their scales in pairs, then their bytes as they are"""
    N, groups = blocks.shape
    words = np.ascontiguousarray(blocks["q"]).view(np.int32).reshape(N // PANEL, PANEL, groups, -1)
    heads = []
    for name in ("scale", "least") if "least" in blocks.dtype.names else ("scale",):
        pairs = np.ascontiguousarray(blocks[name]).view(np.uint16).reshape(N // PANEL, 2, PANEL // 2, groups)
        heads.append(join(pairs.transpose(0, 3, 2, 1), 16))  # (panel, group, PANEL/2)
    codes = words.transpose(0, 2, 3, 1).reshape(N // PANEL, groups, -1)
    return np.concatenate([*heads, codes], axis=-1).reshape(-1)


def join(parts: npt.NDArray[Any], bits: int) -> Words:
    """(..., n) -> (...,): n numbers of `bits` bits in a word, the first one lowest"""
    shifts = np.arange(parts.shape[-1], dtype=np.uint32) * np.uint32(bits)
    return np.bitwise_or.reduce(parts.astype(np.uint32) << shifts, axis=-1).view(np.int32)


def columns(words: Words) -> Words:
    """(N, words of an output) -> flat, in panels whose columns are outputs"""
    return words.reshape(-1, PANEL, words.shape[1]).transpose(0, 2, 1).reshape(-1)


def matrix(rows: int, inputs: int, seed: int = 0, name: str = "int8") -> Floats:
    """Of all sizes, with groups of zeros, ties, equal largest weights, and numbers that only just fit."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(rows, inputs)) * 10.0 ** rng.integers(-8, 4, size=(rows, 1))
    weight[::5] = np.rint(4 * weight[::5])
    weight[1::7] = 0
    if name == "fp16":
        weight = np.clip(weight, -65504, 65504)
    highest = {"fp16": -65504, "q8_0": -127 * 65504, "q4_0": -8 * 65504, "q4_1": -65504}.get(name, -1e38)
    weight[2::9] = rng.choice([-3.5, 3.5, 0.25, 1e-40, highest], size=weight[2::9].shape)
    return weight.astype(np.float32)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("sizes", [(32, 32), (1, 1), (65, 33), (70, 100), (256, 640)])
def test_packed_words_are_those_of_numpy(name: str, sizes: tuple[int, int]) -> None:
    weight = matrix(*sizes, name=name)
    want = reference(weight, name)
    assert (pack([weight], name) == want).all()
    assert want.size == -(-sizes[0] // PANEL) * panel_words(name, sizes[1])


@pytest.mark.parametrize("name", FORMATS)
def test_matrices_one_above_the_other_share_panels(name: str) -> None:
    parts = [matrix(rows, 70, seed, name) for seed, rows in enumerate((5, 64, 1, 30))]
    assert (pack(parts, name) == reference(np.concatenate(parts), name)).all()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_kept_by_fp32_alone(name: str, value: float) -> None:
    weight = matrix(40, 40, name=name)
    weight[35, 39] = value
    if name == "fp32":
        assert (pack([weight], name) == reference(weight, name)).all()
        return
    with pytest.raises(ChainruleError, match=f"not finite.*, {name} cannot hold"):
        pack([weight], name)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_a_file_go_over_byte_by_byte(name: str) -> None:
    """Any bytes: the largest code need not be the one that rounding would have chosen."""
    rng = np.random.default_rng(3)
    parts, params = [], []
    for rows in (5, 64, 27):
        blocks = np.zeros((rows, 3), block_format(name).dtype)
        codes = np.iinfo(blocks["q"].dtype)
        for half in set(blocks.dtype.names) - {"q"}:
            blocks[half] = rng.normal(size=blocks.shape)
        blocks["q"] = rng.integers(codes.min, codes.max + 1, size=blocks["q"].shape)
        parts.append(blocks)
        params.append(stored(blocks, name))
    assert (pack(params, name) == in_panels(np.concatenate(parts))).all()
    assert format_of(params, STORED) == name
    params[0].array = np.zeros(params[0].shape, np.float32)  # its own values now: no longer those of the file
    assert format_of(params, STORED) == "fp32"
    with_zeros = [np.zeros_like(parts[0]), *parts[1:]]
    if name == "q4_0":
        with_zeros[0]["q"], with_zeros[0]["scale"] = 0x88, -0.0
    assert (pack(params, name) == in_panels(np.concatenate(with_zeros))).all()


def stored(blocks: npt.NDArray[Any], name: str) -> StoredParam:
    param = StoredParam((len(blocks), GROUP * blocks.shape[1]), decay=True)
    param.read = lambda: block_format(name).decode(memoryview(blocks.tobytes())).reshape(param.shape)
    param.format, param.read_blocks = name, lambda: blocks.view(np.uint8)
    return param


@pytest.mark.parametrize("name", BLOCKS)
def test_what_is_too_large_for_a_scale_in_fp16_is_refused(name: str) -> None:
    weight = matrix(40, 40, name=name)
    weight[35, 39] = -1e9
    with pytest.raises(ChainruleError, match=f"not finite, or too large, {name} cannot hold"):
        pack([weight], name)


@pytest.mark.parametrize("name", BLOCKS)
def test_numpy_refuses_it_too(name: str) -> None:
    model = cr.models.GPT(cr.models.GPTConfig(1, 2, 32, block_size=8, vocab_size=9))
    model.h[0].mlp.c_fc.weight.array[3, 4] = 1e9
    with (
        backend("reference"),
        pytest.raises(ChainruleError, match=f"not finite, or too large, {name} cannot hold"),
    ):
        cr.generate.Decoder(model, name).prefill([1, 2])


@pytest.mark.parametrize(
    ("file", "enum", "names"), [("panels.hpp", "Format", [*CODES]), ("decode.hpp", "CacheFormat", [*CACHES])]
)
def test_formats_are_numbered_as_in_the_extension(file: str, enum: str, names: list[str]) -> None:
    source = (Path(__file__).parents[3] / "native" / "decode" / file).read_text(encoding="utf-8")
    (listed,) = re.findall(rf"enum class {enum} {{(.*?)}};", source)
    assert listed.replace(" ", "").split(",") == names
