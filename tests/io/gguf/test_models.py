"""GGUF: there and back, in every format of numbers, and damaged or hostile files."""

from __future__ import annotations

import struct
import time
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule import native
from chainrule.errors import ChainruleError, CheckpointError, ConfigError, FormatError
from chainrule.generate.engine.memory import footprint
from chainrule.io import gguf, load
from chainrule.io.gguf import blocks, file
from chainrule.io.gguf.blocks import F32, Q4_0, Q4_1, Q8_0, Format
from chainrule.io.gguf.models import FORMATS, open_file
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, NeoX, NeoXConfig, make
from chainrule.nn import LinearScaling, Llama3Scaling, frequencies
from chainrule.runs.load import open_model
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer, UnigramTokenizer
from tests.io.test_llama2c import tokenizer as pieces

TEXT = "the lower lowest of the low newer widest — naïve 🙂\n" * 9


def llama(vocab_size: int = 11, width: int = 36, **more: Any) -> Llama:
    cr.seed(1)
    return Llama(LlamaConfig(2, 6, 3, width, 64, 9, vocab_size, **more)).eval()


def gpt(vocab_size: int = 11, **more: Any) -> GPT:
    cr.seed(1)
    return GPT(GPTConfig(2, 3, 36, 9, vocab_size, **more)).eval()


def neox(**more: Any) -> NeoX:
    cr.seed(1)
    return NeoX(NeoXConfig(2, 3, 48, 9, 11, **more)).eval()


MODELS: dict[str, Any] = {
    "llama": llama(),
    "llama, untied": llama(tied=False, rope_base=500.0, norm_eps=1e-6),
    "llama, wide heads": llama(width=35, head_dim=8, rope_scaling=LinearScaling(2.5)),
    "llama with biases": llama(attention_bias="all"),
    "llama with some biases": llama(attention_bias="qkv"),
    "llama 3": llama(rope_scaling=Llama3Scaling(8.0, 1.5, 3.0, 64)),
    "phi3": llama(variant="phi3", tied=False),
    "qwen3": llama(width=35, head_dim=8, variant="qwen3"),
    "smollm3": llama(variant="smollm3", rope_scaling=LinearScaling(2.5)),
    "neox": neox(),
    "neox, serial": neox(rotary=0.5, parallel=False, rope_base=500.0, n_hidden=35, activation="gelu_tanh"),
    "gpt": gpt(),
    "gpt, narrow inside": gpt(n_hidden=35),
    "gpt, untied": gpt(tied=False, activation="gelu_tanh", norm_eps=3e-7),
}
CHARS = CharTokenizer("abcdefghij ")


@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    gguf.write(MODELS[name], CHARS, tmp_path / "x.gguf")
    model, _ = cr.load(tmp_path / "x.gguf")
    assert model.config == MODELS[name].config and not model.training
    assert all((model.state()[key] == value).all() for key, value in MODELS[name].state().items())


def logits(model: Any) -> Any:
    with cr.no_grad():
        return model(np.arange(8)[None]).numpy()


def test_gains_and_heads_that_llama_cpp_stores_otherwise(tmp_path: Path) -> None:
    """Gemma's gains are 1 plus its weights there; a NeoX has a head of its own."""
    gemma = llama(variant="gemma", head_dim=8)
    rng = np.random.default_rng(0)
    gemma.load({name: value + 0.2 * rng.normal(size=value.shape) for name, value in gemma.state().items()})
    for name, model in {"gemma": gemma, "tied": neox(tied=True)}.items():
        gguf.write(model, CHARS, tmp_path / f"{name}.gguf")
        np.testing.assert_allclose(logits(load(tmp_path / f"{name}.gguf")[0]), logits(model), atol=1e-6)
    _, tensors = file.read(tmp_path / "gemma.gguf")
    gain = gemma.arrays()["norm.weight"] + np.float32(1)
    np.testing.assert_array_equal(tensors["output_norm.weight"].array(), gain)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (lambda: gpt(activation="relu"), "activation is relu"),
        (lambda: neox(activation="relu"), "activation is relu"),
        (lambda: llama(variant="qwen3", attention_bias="all"), "attention_bias is all in a qwen3"),
        (lambda: llama(variant="phi3", attention_bias="qkv"), "attention_bias is qkv in a phi3"),
        (lambda: llama(variant="phi3", head_dim=8), "head_dim is 8 in a phi3"),
        (lambda: llama(variant="gemma", tied=False), "tied is False in a gemma"),
    ],
)
def test_what_llama_cpp_has_not_is_not_written(model: Any, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rule):
        gguf.write(model(), CHARS, tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


def changed(model: Any, path: Path, drop: str = "", more: Any = None, **settings: Any) -> Path:
    """A file with some settings of its kind changed, without a tensor, and with others."""
    gguf.write(model, CHARS, path)
    metadata, tensors = file.read(path)
    kind = metadata["general.architecture"]
    path.unlink()
    arrays = {name: (F32, stored.array()) for name, stored in tensors.items() if name != drop}
    arrays |= {name: (F32, array) for name, array in (more or {}).items()}
    file.write(path, metadata | {f"{kind}.{name}": value for name, value in settings.items()}, arrays)
    return path


def test_a_sliding_window_ends_the_context(tmp_path: Path) -> None:
    path = changed(llama(variant="phi3"), tmp_path / "x.gguf", **{"attention.sliding_window": 7})
    with pytest.warns(cr.errors.ChainruleWarning, match="the context is 7 tokens here, not 9"):
        assert load(path)[0].config.block_size == 7


@pytest.mark.parametrize(
    ("model", "change", "rule"),
    [
        ("phi3", {"more": {"rope_factors_long.weight": np.ones(3, np.float32)}}, "longrope"),
        ("phi3", {"more": {"blk.0.attn_qkv.weight": np.ones((99, 36), np.float32)}}, "must have 72 rows"),
        ("neox", {"more": {"blk.0.attn_qkv.bias": np.ones(999, np.float32)}}, "must have 144 rows"),
        ("neox", {"rope.dimension_count": 7}, "dimension_count is 7"),
        ("qwen3", {"drop": "blk.0.attn_q_norm.weight"}, "ask for"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    model: str, change: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    path = changed(MODELS[model], tmp_path / "x.gguf", **change)
    with pytest.raises(FormatError, match=rule) as error:
        load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("model", "settings", "rule"),
    [
        ("llama", {"attention.key_length": 2**30, "attention.value_length": 2**30}, "head_dim is 1073741824"),
        ("llama", {"context_length": 2**31 - 1}, "block_size is 2147483647"),
        ("llama", {"feed_forward_length": 2**31 - 1}, "n_hidden is 2147483647"),
        ("neox", {"context_length": 2**31 - 1}, "block_size is 2147483647"),
        ("gpt", {"block_count": 2**31 - 1}, "n_layer is 2147483647"),
    ],
)
def test_sizes_that_the_file_cannot_hold_are_refused_before_they_are_used(
    model: str, settings: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    made = {"llama": llama, "neox": neox, "gpt": gpt}[model]()
    if "attention.key_length" in settings:
        settings = settings | {"rope.dimension_count": 2**30}
    path = changed(made, tmp_path / "x.gguf", **settings)
    tracemalloc.start()
    with pytest.raises(FormatError, match=rf"{rule} \(must be at most"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def rewritten(path: Path, more: Any = None, **settings: Any) -> Path:
    """A file of ours with other settings of `llama`, and with `more` tensors."""
    path.unlink(missing_ok=True)
    gguf.write(llama(rope_base=500000.0), CHARS, path)
    metadata, tensors = file.read(path)
    path.unlink()
    arrays = {name: (F32, array) for name, array in (more or {}).items()}
    arrays |= {name: (F32, stored.array()) for name, stored in tensors.items()}
    file.write(path, metadata | {f"llama.{name}": value for name, value in settings.items()}, arrays)
    return path


def test_the_divided_frequencies_of_a_published_llama_3(tmp_path: Path) -> None:
    """llama.cpp writes what they are divided by, and nothing of the rule behind it."""
    plain, scaling = frequencies(6, 500000.0), Llama3Scaling(32.0, 1.0, 4.0, 8192)
    divisors = (plain / scaling.slowed(plain)).astype(np.float32)
    model, _ = load(rewritten(tmp_path / "x.gguf", more={"rope_freqs.weight": divisors}))
    assert model.config.rope_scaling == scaling
    for wrong in (divisors + np.float32(0.1), divisors[:2], np.full(3, np.nan, np.float32)):
        path = rewritten(tmp_path / "x.gguf", more={"rope_freqs.weight": wrong})
        with pytest.raises(
            FormatError, match=r"rope_freqs\.weight (differs from|has 2 numbers)|factor is nan"
        ):
            load(path)


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 2.0}, LinearScaling(2.0)),
        ({"rope.scale_linear": 4.0}, LinearScaling(4.0)),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 2.0}, None),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0}, "type is 'yarn'"),
        ({"rope.scaling.factor": -1.0}, "factor is -1.0"),
        ({"attention.key_length": 8}, "value_length is 6"),
        ({"attention.key_length": 8, "attention.value_length": 8}, "dimension_count is 6"),
        ({"rope.dimension_count": 2}, "dimension_count is 2"),
    ],
)
def test_scaled_positions_and_sizes_of_heads(
    settings: dict[str, Any], want: LinearScaling | str | None, tmp_path: Path
) -> None:
    path = rewritten(tmp_path / "x.gguf", **settings)
    if isinstance(want, str):
        with pytest.raises(FormatError, match=want):
            load(path)
    else:
        assert load(path)[0].config.rope_scaling == want


def test_a_gpt_without_biases_gives_the_same_logits(tmp_path: Path) -> None:
    gguf.write(gpt(bias=False), CHARS, tmp_path / "x.gguf")
    ids = np.arange(8)[None]
    with cr.no_grad():
        np.testing.assert_array_equal(load(tmp_path / "x.gguf")[0](ids).numpy(), gpt(bias=False)(ids).numpy())


@pytest.mark.parametrize(
    "tokenizer",
    [
        BPETokenizer.train(TEXT, 270, special_tokens=["<|endoftext|>"]),
        BPETokenizer.train(TEXT, 270, pattern="gpt2"),
        pieces(),
    ],
    ids=["bpe", "bpe of gpt2", "pieces"],
)
def test_tokenizers_come_back(tokenizer: Tokenizer, tmp_path: Path) -> None:
    gguf.write(llama(tokenizer.vocab_size), tokenizer, tmp_path / "x.gguf")
    assert load(tmp_path / "x.gguf")[1] == tokenizer


def test_characters_come_back_as_pieces_with_the_same_ids(tmp_path: Path) -> None:
    gguf.write(llama(), CHARS, tmp_path / "x.gguf")
    words = load(tmp_path / "x.gguf")[1]
    assert words.encode(" a bad  cage ").tolist() == CHARS.encode(" a bad  cage ").tolist()
    assert words.decode(words.encode(" a bad  cage ")) == " a bad  cage "


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot hold a RNNLM"):
        gguf.write(make("rnn", vocab_size=11), CHARS, tmp_path / "x.gguf")
    with pytest.raises(ConfigError, match="cannot hold this unigram tokenizer"):
        gguf.write(llama(280), UnigramTokenizer.train(TEXT, 280), tmp_path / "x.gguf")
    with pytest.raises(ConfigError, match="cannot hold this char tokenizer"):
        gguf.write(llama(2), CharTokenizer(" ▁"), tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


def test_blocks_of_eight_bits_are_close(tmp_path: Path) -> None:
    model = llama(width=96)
    gguf.write(model, CHARS, tmp_path / "x.gguf", weights="q8_0")
    _, tensors = file.read(tmp_path / "x.gguf")
    assert tensors["blk.0.attn_q.weight"].format is Q8_0 and tensors["blk.0.attn_norm.weight"].format is F32
    back = load(tmp_path / "x.gguf")[0].state()
    for name, value in model.state().items():
        assert np.abs(back[name] - value).max() <= np.abs(value).max() / 127


def test_blocks_of_four_bits_are_close(tmp_path: Path) -> None:
    model = llama(width=96)
    gguf.write(model, CHARS, tmp_path / "x.gguf", weights="q4_0")
    settings, tensors = file.read(tmp_path / "x.gguf")
    assert settings["general.file_type"] == 2
    assert tensors["blk.0.attn_q.weight"].format is Q4_0 and tensors["blk.0.attn_norm.weight"].format is F32
    back = load(tmp_path / "x.gguf")[0].state()
    for name, value in model.state().items():
        assert np.abs(back[name] - value).max() <= np.abs(value).max() / 8 * (1 + 1e-3)


@pytest.mark.parametrize("format", [Q8_0, Q4_0, Q4_1], ids=lambda format: format.name)
def test_blocks_reach_a_decoder_as_they_are(
    format: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any blocks, also such as rounding would not make; queries and keys with their rows in our order."""
    rng = np.random.default_rng(0)

    def any_blocks(rows: np.ndarray) -> np.ndarray:
        blocks = np.zeros(len(rows), format.dtype)
        codes = np.iinfo(blocks["q"].dtype)
        for half in set(format.dtype.names or ()) - {"q"}:
            blocks[half] = rng.normal(size=len(rows)) / (5 * codes.max)
        blocks["q"] = rng.integers(codes.min, codes.max + 1, size=blocks["q"].shape)
        return blocks

    name, path = format.name.lower(), tmp_path / "x.gguf"
    monkeypatch.setitem(FORMATS, name, replace(format, pack=any_blocks))
    gguf.write(llama(width=96), CHARS, path, weights=name)
    opened = open_file(path)
    model: Any = opened.to_decode()
    for key, param in model.named_parameters():
        assert param.stored_format == (name if param.ndim == 2 else None)
        if param.ndim == 2:
            found = format.decode(memoryview(param.blocks(name).tobytes())).reshape(param.shape)
            assert (found == np.asarray(opened.arrays[key])).all()
    ids = [1, 2, 3, 4, 5]
    kept = cr.generate.Decoder(model, "stored").prefill(ids)
    assert (kept == cr.generate.Decoder(model, name).prefill(ids)).all()
    exact = cr.generate.Decoder(load(path)[0]).prefill(ids)
    assert np.abs(kept - exact).max() < 0.1 * exact.std()
    if native.available():  # rounded again they are others
        assert np.abs(cr.generate.Decoder(load(path)[0], name).prefill(ids) - kept).max() > 0


MIXES = {  # as llama.cpp chooses formats for Q4_K_M; and the others
    "Q4_K_M": {"attn_v": "Q6_K", "ffn_down": "Q6_K", "token_embd": "Q6_K", "": "Q4_K"},
    "Q5_K and Q5_0": {"attn": "Q5_K", "ffn_up": "Q5_0", "token_embd": "Q5_0", "": "Q5_1"},
    "F16": {"attn_k": "BF16", "": "F16"},
}


@pytest.mark.skipif(not native.available(), reason="the extension was not built")
@pytest.mark.parametrize("mix", MIXES)
def test_matrices_of_several_formats_reach_a_decoder_as_they_are(
    mix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where queries, keys and values, which are one matrix for us, are not of one format."""
    rng, by_name = np.random.default_rng(0), {format.name: format for format in blocks.FORMATS.values()}

    def any_blocks(format: Format, rows: np.ndarray) -> np.ndarray:
        if format.name == "BF16":
            return (rows.view(np.uint32) >> 16).astype(np.uint16)
        if format.block == 1:
            return rows.astype(format.dtype)
        found = rng.integers(256, size=(len(rows), format.dtype.itemsize), dtype=np.uint8).view(format.dtype)[
            :, 0
        ]
        small = 30 if "small" in (format.dtype.names or ()) else 1
        for half in {"scale", "least"} & set(format.dtype.names or ()):
            found[half] = rng.normal(size=len(rows)) / (500 * small)
        return found

    def written(path: Path, metadata: Any, arrays: Any) -> None:
        chosen = {}
        for name, (_, array) in arrays.items():
            format = by_name[next(MIXES[mix][part] for part in MIXES[mix] if part in name)]
            chosen[name] = (
                replace(format, pack=partial(any_blocks, format)) if array.ndim == 2 else F32,
                array,
            )
        write(path, metadata, chosen)

    write, path = file.write, tmp_path / "x.gguf"
    monkeypatch.setattr(file, "write", written)
    gguf.write(Llama(LlamaConfig(2, 4, 2, 256, 512, 32, 11)), CHARS, path)
    model: Any = open_file(path).to_decode()
    ids = [1, 2, 3, 4, 5]
    exact = cr.generate.Decoder(load(path)[0]).prefill(ids)
    found = cr.generate.Decoder(model, "stored").prefill(ids)
    assert np.abs(found - exact).max() < (0.1 if mix != "F16" else 1e-4) * exact.std()
    matrices = [tensor for tensor in file.read(path)[1].values() if tensor.ndim == 2]
    table = 32 * len(matrices[0].content) // 11 - len(matrices[0].content)  # up to a whole panel of tokens
    vectors = 4 * (5 * 256 + 2 * 32 * 32)  # gains, and angles of each position
    assert footprint(model, "stored").weights == sum(len(m.content) for m in matrices) + table + vectors


def test_blocks_with_a_scale_that_is_not_finite_are_refused(tmp_path: Path) -> None:
    gguf.write(llama(width=96), CHARS, tmp_path / "x.gguf", weights="q8_0")
    content = (tmp_path / "x.gguf").read_bytes()
    _, tensors = file.read(tmp_path / "x.gguf")
    block = bytes(tensors["blk.0.ffn_down.weight"].content[:34])
    (tmp_path / "y.gguf").write_bytes(content.replace(block, b"\x00\x7c" + block[2:], 1))
    model: Any = open_file(tmp_path / "y.gguf").to_decode()
    with pytest.raises(FormatError, match=r"down_proj.weight: 1 of \d+ scales are NaN or infinite"):
        cr.generate.Decoder(model, "stored")
    model = open_model(tmp_path / "y.gguf", to_decode=True).model
    with pytest.raises(CheckpointError, match=r"y\.gguf: .*down_proj.weight: 1 of \d+ scales"):
        cr.generate.Decoder(model, "stored")


def header(tensors: int = 0, settings: int = 0, version: int = 3, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, settings) + rest


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes = b"x", shape: tuple[int, ...] = (2,), format: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, format, offset)


HUGE = 2**63
BAD = {
    "another magic": (b"GGML" + bytes(20), "does not begin with GGUF"),
    "version 1": (header(version=1), "GGUF version 1"),
    "too many tensors": (header(tensors=HUGE), "tensors in 0 bytes"),
    "too many settings": (header(settings=HUGE), "settings in 0 bytes"),
    "a long name": (header(settings=1, rest=struct.pack("<Q", HUGE) + bytes(9)), "a name of"),
    "a name that is no text": (header(settings=1, rest=text(b"\xff") + bytes(20)), "not UTF-8"),
    "a long string": (
        header(settings=1, rest=text(b"k") + struct.pack("<IQ", 8, HUGE)),
        "bytes at .*is cut or damaged",
    ),
    "an unknown type": (header(settings=1, rest=text(b"k") + struct.pack("<I", 99)), "type 99"),
    "an array of arrays": (
        header(settings=1, rest=text(b"k") + struct.pack("<IIQ", 9, 9, 1) + bytes(9)),
        "an array of type 9",
    ),
    "a long array": (
        header(settings=1, rest=text(b"k") + struct.pack("<IIQ", 9, 4, HUGE)),
        "is cut or damaged",
    ),
    "many strings": (
        header(settings=1, rest=text(b"k") + struct.pack("<IIQ", 9, 8, 2**40)),
        "strings in 0 bytes",
    ),
    "a setting twice": (
        header(settings=2, rest=2 * (text(b"k") + struct.pack("<II", 4, 7))),
        "'k' occurs twice",
    ),
    "a tensor twice": (header(tensors=2, rest=2 * tensor() + bytes(64)), "'x' occurs twice"),
    "alignment 0": (
        header(1, 1, rest=text(b"general.alignment") + struct.pack("<II", 4, 0) + tensor() + bytes(64)),
        "general.alignment is 0",
    ),
    "nine axes": (header(1, rest=tensor(shape=(1,) * 9) + bytes(64)), "has 9 axes"),
    "an unknown format": (header(1, rest=tensor(format=99) + bytes(64)), "has the format 99"),
    "a format we do not read": (
        header(1, rest=tensor(format=10) + bytes(64)),
        r"has the format Q2_K \(must be one of F32, .* Q4_K, Q5_K, Q6_K, BF16\)",
    ),
    "part of a large block": (
        header(1, rest=tensor(shape=(288,), format=12) + bytes(999)),
        "for Q4_K .* the last a multiple of 256",
    ),
    "sizes that overflow": (header(1, rest=tensor(shape=(2**32, 2**32)) + bytes(64)), "does not fit"),
    "a size of 0": (header(1, rest=tensor(shape=(0,)) + bytes(64)), "has shape"),
    "half a block": (header(1, rest=tensor(shape=(33,), format=8) + bytes(64)), "the last a multiple of 32"),
    "beyond the end": (header(1, rest=tensor(offset=64) + bytes(64)), "does not fit"),
    "crooked": (header(1, rest=tensor(offset=4) + bytes(64)), "does not fit"),
    "one over the other": (header(2, rest=tensor() + tensor(b"y") + bytes(99)), "does not fit"),
    "no architecture": (header(), "general.architecture is None"),
    "a mixture of experts": (
        header(settings=1, rest=text(b"general.architecture") + struct.pack("<I", 8) + text(b"qwen3moe")),
        "'qwen3moe' .is not supported: it has a mixture of experts; must be one of llama, qwen2",
    ),
    **{
        f"an encoder, {kind}": (
            header(
                settings=1, rest=text(b"general.architecture") + struct.pack("<I", 8) + text(kind.encode())
            ),
            f"'{kind}' .{why}.* and [0-9]+ others, see docs/guide/interchange.md",
        )
        for kind, why in (
            ("bert", "is read from its Hugging Face directory, not from GGUF"),
            ("t5", "is read from its Hugging Face directory, not from GGUF"),
            ("nomic-bert", "is not supported: it has rotary positions and windows in an encoder"),
            ("other", "is not known"),
        )
    },
}


@pytest.mark.parametrize("name", BAD)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    content, rule = BAD[name]
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(FormatError, match=rule) as error:
        gguf.read(tmp_path / "x.gguf")
    assert "x.gguf: " in str(error.value) and "\n" not in str(error.value)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "x.gguf"
    gguf.write(Llama(LlamaConfig(1, 2, 1, 4, 4, 4, 11)), CHARS, path)
    return path.read_bytes()


def test_every_cut_is_noticed(small: bytes, tmp_path: Path) -> None:
    for size in range(0, len(small) - 32, 3):  # the last bytes may be padding
        (tmp_path / "x.gguf").write_bytes(small[:size])
        with pytest.raises(ChainruleError):
            load(tmp_path / "x.gguf")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_bytes_are_noticed_or_give_a_model(
    small: bytes, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(small)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("changed") / "x.gguf"
    path.write_bytes(content)
    start = time.monotonic()
    try:
        model, tokenizer = load(path)
        assert tokenizer.vocab_size <= model.config.vocab_size
    except ChainruleError as error:
        assert "\n" not in str(error)
    assert time.monotonic() - start < 5
