"""Packed weights and programs in C++: products of every format, at every ISA, by any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.generate import Decoder
from chainrule.generate.engine.plan import decoder_graph
from chainrule.generate.engine.program import Compiler
from chainrule.generate.engine.weights import BLOCKS, CODES, FORMATS, pack, pad, quantize, rounded, to_bf16
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, NeoX, NeoXConfig
from chainrule.trace.lower import lower

extension = native.kernels()


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def entering(x: np.ndarray, weights: str) -> np.ndarray:
    """What a product in this format makes of x (R, K): of blocks 8 bits, with a scale for each 32 of a row"""
    if weights not in BLOCKS:
        return x
    groups = np.pad(x, [(0, 0), (0, -x.shape[1] % 32)]).reshape(len(x), -1, 32)
    largest = np.abs(groups).max(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inverse = np.float32(127) / largest
    codes = np.rint(groups * np.where(np.isfinite(inverse), inverse, np.float32(0)))
    return (codes * (largest / np.float32(127))).reshape(len(x), -1)[:, : x.shape[1]]


def product(x: np.ndarray, W: np.ndarray, weights: str) -> np.ndarray:
    """x Wᵀ by the kernel: x (R, K), W (N, K)"""
    R, N = len(x), len(W)
    y = np.empty((R, N + -N % 32), np.float32)
    extension.panels_multiply(
        y, np.pad(x, [(0, 0), (0, -x.shape[1] % 32)]), pack([W], weights), FORMATS.index(weights)
    )
    assert not y[np.isfinite(x).all(axis=1), N:].any()
    return y[:, :N]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize(("N", "K"), [(1, 1), (7, 65), (65, 48), (257, 130), (32, 257)])
def test_products_of_every_format(N: int, K: int, weights: str, isa: str) -> None:
    assert extension.set_isa(isa)
    W = normal(N, K)
    for R in (1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 29):
        x = normal(R, K)
        exact = entering(x, weights).astype(np.float64) @ rounded(W, weights).astype(np.float64).T
        y = product(x, W, weights)
        np.testing.assert_allclose(y, exact, rtol=1e-5, atol=1e-5 * np.sqrt(K))
        alone = np.concatenate([product(row[None], W, weights) for row in x])
        assert (alone == y).all(), "a row depends on the others"


@pytest.mark.parametrize("weights", FORMATS)
def test_products_with_large_small_and_broken_numbers(weights: str) -> None:
    W, x = normal(40, 64), normal(3, 64)
    for scale in (1e4, 1e-2 if weights in (*BLOCKS, "fp16") else 1e-4):  # scales in fp16
        exact = entering(x, weights).astype(np.float64) @ rounded(scale * W, weights).astype(np.float64).T
        np.testing.assert_allclose(product(x, scale * W, weights), exact, rtol=1e-4, atol=1e-5 * scale)
    assert not product(x, 0 * W, weights).any()
    x[1, 5] = np.nan
    y = product(x, W, weights)
    assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()
    x[1, 5] = np.inf
    assert not np.isfinite(product(x, W, weights)[1]).any()


def test_bf16_rounds_to_nearest_ties_to_even() -> None:
    x = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -(1 + 2**-9), 0, np.inf], np.float32)
    want = [1, 1 + 2**-6, 1 + 2**-7, -1, 0, np.inf]
    assert rounded(x[None], "bf16")[0].tolist() == want
    assert np.isnan(rounded(np.array([[np.nan]], np.float32), "bf16")).all()
    W = normal(65, 65)
    assert (np.abs(rounded(W, "bf16") - W) <= np.abs(W) * 2**-8).all()


@pytest.mark.parametrize(("weights", "bits"), [("int8", 8), ("int4", 4)])
def test_integers_are_off_by_half_a_scale_at_most(weights: str, bits: int) -> None:
    W = normal(65, 130) * np.exp(normal(65, 1))
    codes, scales = quantize(pad(W), bits)
    assert codes.min() >= 0 and codes.max() <= 2**bits - 1 and (codes == np.rint(codes)).all()
    assert (scales.view(np.uint32) & 0xFFFF == 0).all()  # bf16
    error = np.abs(pad(rounded(W, weights)) - pad(W)).reshape(codes.shape)
    # The weight farthest from 0 on the other side of a group in int4 may be cut off: codes reach from -8 to 7.
    reach = np.where(codes == 2**bits - 1, 1.0, 0.5)
    assert (error <= reach * np.abs(scales)[..., None] * (1 + 1e-6)).all()
    largest = np.abs(pad(W)).reshape(codes.shape).max(-1)
    assert (np.abs(scales) <= largest / (2 ** (bits - 1) - 1) * (1 + 2**-7)).all()


def test_a_packed_matrix_is_as_small_as_promised() -> None:
    W = normal(64, 320)
    sizes = {name: 32 * pack([W], name).size / W.size for name in FORMATS}
    assert sizes == {
        "fp32": 32,
        "bf16": 16,
        "fp16": 16,
        "int8": 8.5,
        "int4": 4.5,
        "q8_0": 8.5,
        "q4_0": 4.5,
        "q4_1": 5,
    }
    assert to_bf16(np.float32([1.0]))[0] == 0x3F80


def models() -> list[GPT | Llama | NeoX]:
    cr.seed(0)
    llama = LlamaConfig(
        n_layer=2, n_head=6, n_kv_head=2, n_embd=96, n_hidden=200, block_size=200, vocab_size=65
    )
    return [
        GPT(GPTConfig(n_layer=2, n_head=4, n_embd=48, block_size=200, vocab_size=257)),
        Llama(llama),
        Llama(replace(llama, variant="qwen3")),
        Llama(replace(llama, variant="gemma", n_layer=1)),
        NeoX(NeoXConfig(n_layer=2, n_head=4, n_embd=64, block_size=200, vocab_size=65)),
    ]


def run(decoder: Decoder, ids: np.ndarray) -> bytes:
    decoder.reset()
    return decoder.prefill([ids[:150], ids[:3]]).tobytes() + decoder.step(ids[:2]).tobytes()


@pytest.mark.parametrize(
    ("weights", "cache"), [*((weights, "fp32") for weights in FORMATS), ("fp32", "bf16"), ("fp32", "int8")]
)
def test_the_same_bits_for_any_number_of_threads(weights: str, cache: str) -> None:
    for model in models():
        decoder = Decoder(model, weights, batch=2, cache=cache)
        ids = np.random.default_rng(0).integers(65, size=150)
        native.set_threads(1)
        want = run(decoder, ids)
        for threads in (2, 3, 8):
            native.set_threads(threads)
            for _ in range(3):
                assert run(decoder, ids) == want, f"{threads} threads"


def test_every_isa_gives_the_same_up_to_rounding() -> None:
    ids = np.random.default_rng(0).integers(65, size=150)
    for model in models():
        decoder, results = Decoder(model, "int8"), []
        for isa in native.isas():
            assert extension.set_isa(isa)
            decoder.reset()
            results.append(decoder.prefill(ids))
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=0, atol=1e-5)


def test_decoders_in_several_python_threads_do_not_disturb_each_other() -> None:
    native.set_threads(2)
    ids = np.random.default_rng(0).integers(65, size=150)
    decoders = [Decoder(model, batch=2) for model in models() * 2]
    want = [run(decoder, ids) for decoder in decoders]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(lambda decoder: run(decoder, ids), decoders)) == want


def test_the_extension_refuses_what_does_not_fit() -> None:
    program = extension.Program(2, 8)
    x, y = program.buffer(33), program.buffer(40)
    words, ones = pack([normal(40, 33)], "int8"), np.ones(64, np.float32)
    with pytest.raises(ValueError, match="words has"):
        program.linear(y, x, words[:-1], CODES["int8"], None, 0, False)
    with pytest.raises(ValueError, match="bias has 40 elements, expected 64"):
        program.linear(y, x, words, CODES["int8"], np.ones(40, np.float32), 0, False)
    with pytest.raises(ValueError, match="format"):
        program.linear(y, x, words, len(CODES), None, 0, False)
    with pytest.raises(ValueError, match="activation"):
        program.linear(y, x, words, CODES["int8"], None, 5, False)
    with pytest.raises(ValueError, match="gamma has 64 elements, expected 33"):
        program.rmsnorm(x, x, ones, 1e-5)
    with pytest.raises(ValueError, match="widths 40 and 33 differ"):
        program.rmsnorm(y, x, ones, 1e-5)
    with pytest.raises(ValueError, match="heads must divide"):
        program.attention(x, y, 2, 2, 1.0, None, None)
    with pytest.raises(ValueError, match="even head"):
        program.attention(
            x, program.buffer(99), 1, 1, 1.0, np.ones((8, 16), np.float32), np.ones((8, 16), np.float32)
        )
    with pytest.raises(ValueError, match="gains of queries and keys come together"):
        program.attention(x, program.buffer(99), 1, 1, 1.0, None, None, ones[:33])
    with pytest.raises(ValueError, match="gamma_k has 64 elements, expected 33"):
        program.attention(x, program.buffer(99), 1, 1, 1.0, None, None, ones[:33], ones, 1e-5)
    with pytest.raises(ValueError, match="widths 40 and 66 differ"):
        program.gated(x, y, 2)
    with pytest.raises(ValueError, match="activation must be from 1 to 4"):
        program.gated(x, program.buffer(66), 0)
    with pytest.raises(ValueError, match="positions must be at least 1"):
        extension.Program(1, 0)
    with pytest.raises(IndexError):
        program.swiglu(x, 9)
    with pytest.raises(TypeError):
        program.rmsnorm(x, x, ones.astype(np.float64), 1e-5)


@pytest.mark.parametrize(
    ("tokens", "sequences", "counts", "past"),
    [
        ([1, 2], [0], [1], [0]),  # a token too many
        ([65], [0], [1], [0]),
        ([1], [2], [1], [0]),
        ([1], [-1], [1], [0]),
        ([1, 1], [0, 0], [1, 1], [0, 0]),
        ([1], [0], [1], [8]),
        ([1], [0], [1], [-1]),
        ([], [0], [0], [0]),
        ([1], [0], [1, 1], [0]),
    ],
)
def test_a_program_refuses_tokens_that_do_not_fit(
    tokens: list[int], sequences: list[int], counts: list[int], past: list[int]
) -> None:
    cr.seed(0)
    decoder = Decoder(GPT(GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=65)), batch=2)
    logits = np.zeros((len(sequences), 65), np.float32)
    with pytest.raises(ValueError):
        decoder._engine.run(
            logits, np.array(tokens, np.int32), *(np.array(a) for a in (sequences, counts, past))
        )
    assert not logits.any()


def test_layers_share_their_table_of_angles() -> None:
    config = LlamaConfig(n_layer=3, n_head=2, n_embd=64, block_size=32, vocab_size=20)
    compiler = Compiler(lower(decoder_graph(Llama(config))), "fp32", 32)
    tables = [arguments[5:7] for name, arguments in compiler.calls if name == "attention"]
    assert len(tables) == 3 and all(cos is tables[0][0] and sin is tables[0][1] for cos, sin in tables)
