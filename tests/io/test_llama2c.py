"""llama2.c's files: there and back, the published model, and damaged ones."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, CheckpointError, ConfigError, FormatError
from chainrule.generate import write
from chainrule.io import gguf, llama2c, load, save_pretrained, save_tokenizer
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig
from chainrule.nn import LinearScaling
from chainrule.text import CharTokenizer, SentencePieceBPETokenizer, Vocabulary
from chainrule.text.unigram import BYTES

PIECES = ["▁", "l", "o", "w", "e", "r", "lo", "low", "▁low", "er"]


def tokenizer() -> SentencePieceBPETokenizer:
    special = ["<unk>", "<s>", "</s>"]
    vocabulary = Vocabulary([*special, *BYTES, *PIECES], special)
    scores = [0.0] * 259 + [-99.0] * 6 + [-1.0, -2.0, -4.0, -3.0]
    return SentencePieceBPETokenizer.from_scores(vocabulary, scores, start="<s>")


def model(tied: bool = True) -> Llama:
    cr.seed(1)
    return Llama(LlamaConfig(2, 6, 3, 36, 20, 9, tokenizer().vocab_size, tied=tied)).eval()


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_written_comes_back_bit_for_bit(tied: bool, tmp_path: Path) -> None:
    llama2c.write(model(tied), tokenizer(), tmp_path)
    read, words = cr.load(tmp_path / "model.bin")
    assert read.config == model(tied).config and words == tokenizer()
    assert all((read.state()[name] == value).all() for name, value in model(tied).state().items())


def test_a_directory_stands_for_the_one_model_in_it(tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    for load_ in (cr.load, load):
        read, words = load_(tmp_path)
        assert read.config == model().config and words == tokenizer()
    (tmp_path / "tokenizer.bin").rename(tmp_path / f"tok{tokenizer().vocab_size}.bin")
    assert load(tmp_path)[1] == tokenizer()
    (tmp_path / "model.bin").rename(tmp_path / "story.bin")
    gguf.write(model(), tokenizer(), tmp_path / "story.gguf")
    for load_ in (cr.load, load):
        with pytest.raises(
            FormatError, match=r"holds 2 models, story\.bin, story\.gguf \(must be one: give the file"
        ):
            load_(tmp_path)
    (tmp_path / "story.bin").unlink()
    assert cr.load(tmp_path)[0].config == model().config
    (tmp_path / "story.gguf").rename(tmp_path / "story.txt")
    with pytest.raises(ChainruleError, match="holds no checkpoint"):  # a tokenizer is no model
        cr.load(tmp_path)


def test_a_run_and_a_directory_with_a_config_are_not_mistaken(tmp_path: Path) -> None:
    save_pretrained(model(), tokenizer(), tmp_path / "hub")
    (tmp_path / "hub" / "pytorch_model.bin").write_bytes(b"PK")
    assert cr.load(tmp_path / "hub")[0].config == model().config
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    llama2c.write(model(), tokenizer(), tmp_path / "run")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        cr.load(tmp_path / "run")


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    """The smallest model by hand: one layer, one head of two, so that the order of rotary pairs does not matter."""
    weights = np.arange(2 * 3 + 2 + 4 * 4 + 2 + 3 * 2 * 3 + 2 + 3 * 2, dtype=np.float32)
    content = struct.pack("<7i", 2, 3, 1, 1, 1, 3, 3) + weights.tobytes()
    (tmp_path / "x.bin").write_bytes(content)
    state = llama2c.read_model(tmp_path / "x.bin").state()
    starts = {
        "embed_tokens.weight": 0,
        "layers.0.input_layernorm.weight": 6,
        "layers.0.self_attn.q_proj.weight": 8,
        "layers.0.self_attn.o_proj.weight": 20,
        "layers.0.post_attention_layernorm.weight": 24,
        "layers.0.mlp.gate_proj.weight": 26,
        "layers.0.mlp.down_proj.weight": 32,
        "layers.0.mlp.up_proj.weight": 38,
        "norm.weight": 44,
    }
    for name, start in starts.items():
        assert state[name].ravel().tolist() == list(range(start, start + state[name].size)), name


def test_the_order_of_rotary_pairs_is_turned(tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    c = model().config
    skip = 7 + c.vocab_size * 36 + 2 * 36
    there = np.fromfile(tmp_path / "model.bin", "<f4")[skip : skip + 36 * 36].reshape(6, 3, 2, 36)
    ours = model().state()["layers.0.self_attn.q_proj.weight"].reshape(6, 2, 3, 36)
    np.testing.assert_array_equal(there, ours.swapaxes(1, 2))


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="llama2c: variant is qwen3"):
        llama2c.write(Llama(LlamaConfig(variant="qwen3")), tokenizer(), tmp_path)
    with pytest.raises(ConfigError, match="cannot hold a GPT"):
        llama2c.write(GPT(GPTConfig(1, 1, 4, 4, 4)), tokenizer(), tmp_path)
    with pytest.raises(ConfigError, match="cannot hold a char tokenizer"):
        llama2c.write(model(), CharTokenizer("ab"), tmp_path)
    with pytest.raises(ConfigError, match=r"rope_base 500\.0"):
        llama2c.write(Llama(LlamaConfig(1, 1, 1, 4, 4, 4, 4, rope_base=500.0)), tokenizer(), tmp_path)
    for more in ({"head_dim": 2}, {"rope_scaling": LinearScaling(2.0)}, {"attention_bias": "all"}):
        with pytest.raises(ConfigError, match=f"llama2c: {next(iter(more))} is"):
            llama2c.write(Llama(LlamaConfig(1, 1, 1, 4, 4, 4, 4, **more)), tokenizer(), tmp_path)
    other = SentencePieceBPETokenizer(Vocabulary(["<unk>", "a"], ["<unk>"]), [])
    with pytest.raises(ConfigError, match="tokens 0 to 258"):
        llama2c.write(model(), other, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_model_without_its_tokenizer(tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    (tmp_path / "tokenizer.bin").unlink()
    with pytest.raises(
        FormatError, match=r"must be tok269\.bin or tokenizer\.bin, or given to import by tokenizer"
    ):
        load(tmp_path / "model.bin")


@pytest.mark.parametrize("field", range(7))
@pytest.mark.parametrize("value", [0, -1, 3, 640, 2**31 - 1, -(2**31)])
def test_every_wrong_size_is_refused(field: int, value: int, tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    content = bytearray((tmp_path / "model.bin").read_bytes())
    if struct.unpack_from("<i", content, 4 * field)[0] == value:
        value += 1  # it is that size
    struct.pack_into("<i", content, 4 * field, value)
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ChainruleError) as error:
        load(tmp_path / "model.bin")
    assert "\n" not in str(error.value)


def test_another_file_by_this_name_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(range(0x86, 0xFF)) * 9)
    with pytest.raises(
        ChainruleError, match=r"weights\.bin: not a llama2.c file, or a damaged one \(by its header"
    ):
        load(tmp_path / "weights.bin")


def test_a_tokenizer_that_does_not_fit_is_named(tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    save_tokenizer(CharTokenizer("".join(map(chr, range(0x4E00, 0x5000)))), tmp_path / "other.json")
    with pytest.raises(ChainruleError, match=r"model\.bin: tokenizer of 512 tokens, model of [0-9]+"):
        load(tmp_path / "model.bin", tmp_path / "other.json")


@pytest.mark.parametrize("name", ["model.bin", "tokenizer.bin"])
def test_every_cut_is_noticed(name: str, tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    content = (tmp_path / name).read_bytes()
    for size in [*range(40), *range(40, len(content), len(content) // 50), len(content) - 1]:
        (tmp_path / name).write_bytes(content[:size])
        with pytest.raises(ChainruleError):
            load(tmp_path / "model.bin")
    (tmp_path / name).write_bytes(content + b"x")
    with pytest.raises(ChainruleError):
        load(tmp_path / "model.bin")


def test_a_changed_byte_of_the_tokenizer_is_noticed_or_gives_a_tokenizer(tmp_path: Path) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    content = (tmp_path / "tokenizer.bin").read_bytes()
    for place in range(0, len(content), 11):
        changed = bytearray(content)
        changed[place] ^= 0xA5
        (tmp_path / "tokenizer.bin").write_bytes(changed)
        try:
            words = llama2c.read_tokenizer(tmp_path / "tokenizer.bin", tokenizer().vocab_size)
        except ChainruleError:
            continue
        ids = words.encode("low lower ö")
        assert ids.min() >= 0 and ids.max() < words.vocab_size


@pytest.mark.skipif(not os.environ.get("CHAINRULE_DATA"), reason="needs the stories260K of CHAINRULE_DATA")
def test_the_published_stories_are_fluent_and_the_same_in_every_format(tmp_path: Path) -> None:
    source = Path(os.environ["CHAINRULE_DATA"], "weights", "stories260K", "stories260K.bin")
    if not source.is_file():
        pytest.skip("CHAINRULE_DATA has no stories260K")
    start = (
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
        "One day, she saw a big, red ball. She wanted to play with it, but it was too high.\nLily's mom said,"
    )
    loaded, words = cr.load(source)
    text = "".join(write(loaded, words, "", 100, temperature=0))  # type: ignore[arg-type]
    assert text.startswith(start)
    cr.io.save_pretrained(loaded, words, tmp_path / "hf")
    cr.io.gguf.write(loaded, words, tmp_path / "x.gguf")
    llama2c.write(loaded, words, tmp_path)
    shutil.copy(tmp_path / "tokenizer.bin", tmp_path / "tok512.bin")
    for place in ("hf", "x.gguf", "model.bin"):
        again, same = cr.load(tmp_path / place)
        assert "".join(write(again, same, "", 100, temperature=0)) == text  # type: ignore[arg-type]
