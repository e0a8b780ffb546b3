"""Blocks of GGUF in C++: products of integers with the same bits on every ISA, and the numbers that a file means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from chainrule import native
from chainrule.generate.engine.weights import (
    BLOCKS,
    CODES,
    FILE_FORMATS,
    PANEL,
    block_format,
    pack,
    panel_words,
)
from tests.kernels.decode.test_program import entering

extension = native.kernels()
NAMES = (*BLOCKS, *FILE_FORMATS)


def drawn(name: str, rows: int, inputs: int, seed: int = 0) -> npt.NDArray[Any]:
    """Blocks (rows, inputs / block) of any bytes, but for scales, which are numbers"""
    rng, format = np.random.default_rng(seed), block_format(name)
    shape = (rows, inputs // format.block * format.dtype.itemsize)
    blocks = rng.integers(256, size=shape, dtype=np.uint8).view(format.dtype)
    for half in {"scale", "least"} & set(format.dtype.names or ()):
        blocks[half] = rng.normal(size=blocks.shape)
    return blocks


def packed(blocks: npt.NDArray[Any], name: str, inputs: int) -> npt.NDArray[np.int32]:
    words = np.empty(-(-len(blocks) // PANEL) * panel_words(name, inputs), np.int32)
    outputs = len(blocks) + -len(blocks) % PANEL
    extension.panels_pack_blocks(words, blocks.view(np.uint8), CODES[name], 0, outputs)
    return words


def numbers(blocks: npt.NDArray[Any], name: str) -> npt.NDArray[np.float32]:
    return block_format(name).decode(memoryview(blocks.tobytes())).reshape(len(blocks), -1)


@pytest.mark.parametrize("name", NAMES)
def test_products_have_the_same_bits_on_every_isa_and_for_any_rows(name: str) -> None:
    """Also with the codes that a saturating instruction would get wrong: the lowest or the highest beside ±127."""
    inputs = 768 if block_format(name).block > 32 else 288
    blocks = drawn(name, 64, inputs)
    blocks["q"][:2] = -128 if name == "q8_0" else 255
    for field in {"fifth", "upper"} & set(blocks.dtype.names or ()):
        blocks[field][:2] = 255
    if name == "q6_k":
        blocks["small"][0], blocks["small"][1] = -128, 127
    words, rng = packed(blocks, name, inputs), np.random.default_rng(1)
    x = rng.normal(size=(17, inputs)).astype(np.float32)
    x[0], x[1] = -3, 1e-39
    found: list[npt.NDArray[np.float32]] = []
    for isa in native.isas():
        assert extension.set_isa(isa)
        for R in (17, 8, 7, 4, 3, 2, 1):
            y = np.empty((R, 64), np.float32)
            extension.panels_multiply(y, x[:R].copy(), words, CODES[name])
            found.append(y)
            assert (y == found[0][:R]).all(), f"{isa}, {R} rows"
    exact = entering(x, "q8_0").astype(np.float64) @ numbers(blocks, name).astype(np.float64).T
    np.testing.assert_allclose(found[0], exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("name", NAMES)
def test_a_table_gives_the_numbers_of_the_file(name: str, isa: str) -> None:
    """To the bit, for every token: an embedding and nothing else."""
    assert extension.set_isa(isa)
    blocks = drawn(name, 64, 512, seed=2)
    program = extension.Program(1, 64)
    program.buffer(512)
    program.embedding(0, packed(blocks, name, 512), CODES[name], 64, 1.0, None)
    program.buffer(512)
    program.last(1, 0)
    found = np.empty((64, 512), np.float32)
    counts = np.array([64])
    program.run(found, np.arange(64, dtype=np.int32), np.array([0]), counts, np.array([0]), kept=counts)
    np.testing.assert_array_equal(found, numbers(blocks, name))


@pytest.mark.parametrize("name", FILE_FORMATS)
def test_formats_of_files_alone_take_no_other_numbers(name: str) -> None:
    words = np.empty(panel_words(name, 256), np.int32)
    with pytest.raises(ValueError, match="files alone"):
        extension.panels_pack(words, np.zeros((32, 256), np.float32), CODES[name], 0, 32)


@pytest.mark.parametrize("name", ["q4_k", "q5_k", "q6_k"])
def test_inputs_are_whole_blocks(name: str) -> None:
    y, x = np.empty((1, 32), np.float32), np.zeros((1, 288), np.float32)
    with pytest.raises(ValueError, match="whole blocks"):
        extension.panels_multiply(y, x, np.empty(panel_words(name, 512), np.int32), CODES[name])


def test_a_linear_layer_may_write_some_panels_of_its_outputs() -> None:
    """As for a matrix whose rows have different formats; others are refused."""
    rng = np.random.default_rng(3)
    W, table = (rng.normal(size=(n, 64)).astype(np.float32) for n in (96, 10))
    program = extension.Program(1, 8)
    program.buffer(64)
    program.embedding(0, pack([table], "fp32"), CODES["fp32"], 10, 1.0, None)
    program.buffer(96)
    for first, rows, name in ((0, 32, "fp32"), (32, 64, "bf16")):
        words = pack([W[first : first + rows]], name)
        program.linear(1, 0, words, CODES[name], None, 0, False, first, rows)
    for first, rows in ((1, 32), (96, 1), (0, 33), (64, 33), (0, 0)):
        with pytest.raises(ValueError, match="whole panels"):
            program.linear(1, 0, pack([W], "fp32"), CODES["fp32"], None, 0, False, first, rows)
    program.buffer(96)
    program.last(2, 1)
    y = np.empty((1, 96), np.float32)
    program.run(y, np.array([4], np.int32), *(np.array([n]) for n in (0, 1, 0)))
    np.testing.assert_allclose(y[0], W @ table[4], rtol=2e-2, atol=0.1)
    np.testing.assert_allclose(y[0, :32], W[:32] @ table[4], rtol=1e-5, atol=1e-5)
