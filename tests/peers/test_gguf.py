"""GGUF next to llama.cpp's own Python package: it reads ours, we read its."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.io import gguf
from chainrule.io.gguf import file
from chainrule.io.gguf.blocks import FORMATS, Q8_0, REFUSED
from chainrule.io.gguf.tokenizers import PATTERNS
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, model_class
from chainrule.text import CharTokenizer
from tests.peers.hard_strings import HARD
from tests.peers.random_models import V, decoder
from tests.peers.test_transformers import agree, torch, transformers

peer = pytest.importorskip("gguf")

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_every_format_means_the_same_numbers(name: str, tmp_path: Path) -> None:
    kind = peer.GGMLQuantizationType[name]
    values = RNG.normal(size=(6, 96)).astype(np.float32)
    values[0, :32] = 0  # a block without a scale
    content = peer.quants.quantize(values, kind)
    writer = peer.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tensor("x", content, raw_dtype=kind)
    writer.add_uint32("n", 7)
    writer.add_array("words", ["one", "zwei"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    metadata, tensors = file.read(tmp_path / "x.gguf")
    assert (metadata["n"], metadata["words"]) == (7, ["one", "zwei"])
    assert tensors["x"].format is FORMATS[kind] and tensors["x"].shape == (6, 96)
    np.testing.assert_array_equal(tensors["x"].array(), peer.quants.dequantize(content, kind))


@pytest.mark.parametrize("name", ["Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"])
def test_any_bytes_of_a_block_mean_the_same_numbers(name: str) -> None:
    """Their package does not write the large blocks; so every bit is drawn, but for scales that are no numbers."""
    kind = peer.GGMLQuantizationType[name]
    format = FORMATS[kind]
    content = RNG.integers(256, size=7 * format.dtype.itemsize, dtype=np.uint8)
    blocks = content.view(format.dtype)
    for field in {"scale", "least"} & set(format.dtype.names or ()):
        blocks[field] = RNG.normal(size=7)
    want = peer.quants.dequantize(content, kind)
    np.testing.assert_array_equal(format.decode(memoryview(content.tobytes())), want)


def test_formats_that_we_refuse_have_their_names() -> None:
    ours = {number: format.name for number, format in FORMATS.items()} | REFUSED
    for kind in peer.GGMLQuantizationType:
        assert ours.get(kind, kind.name) == kind.name


def test_our_blocks_are_theirs() -> None:
    values = RNG.normal(size=(5, 64)).astype(np.float32)
    assert Q8_0.encode(values) == peer.quants.quantize(values, peer.GGMLQuantizationType.Q8_0).tobytes()


def written(path: Path, model: str, pre: str, tokens: list[str], types: list[int], **more: Any) -> Any:
    """A file of their package that holds a tokenizer only."""
    writer = peer.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for name, value in more.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return cr.io.load_tokenizer(path)


@pytest.mark.parametrize("pre", ["smollm", "qwen2", "llama-bpe", "gpt-4o", "deepseek-llm", "default"])
def test_byte_level_tokenizers_of_theirs(pre: str, tmp_path: Path) -> None:
    """Their merges and types mean the same tokens as in `tokenizer.json`."""
    tokenizers = pytest.importorskip("tokenizers")
    text = cr.data.load("pydoc").text[:20_000] + " naïve 中文 🙂 1234"
    ours = cr.text.BPETokenizer.train(text, 600, pattern=PATTERNS[pre], special_tokens=["<|end|>"])
    described = cr.io.tokenizers.to_hugging_face(ours)
    described["model"]["ignore_merges"] = pre == "llama-bpe"
    names = sorted(described["model"]["vocab"], key=described["model"]["vocab"].get)
    merges = [" ".join(pair) for pair in described["model"]["merges"]]
    read = written(tmp_path / "x.gguf", "gpt2", pre, names, [1] * 599 + [3], token_merges=merges)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(described))
    for line in HARD:
        assert read.encode(line, special="all").tolist() == theirs.encode(line).ids


def test_wordpiece_of_theirs(tmp_path: Path) -> None:
    """Vocabularies as llama.cpp's converter writes them: ▁ begins a word, ## is left out."""
    tokenizers = pytest.importorskip("tokenizers")
    ours = cr.text.WordPieceTokenizer.train(cr.data.load("pydoc").text[:20_000] + " é中ß", 600)
    tokens = ours.vocabulary.tokens
    phantom = [t if t in ours.special_ids else t[2:] if t.startswith("##") else "▁" + t for t in tokens]
    types = [3 if token in ours.special_ids else 1 for token in tokens]
    read = written(tmp_path / "x.gguf", "bert", "default", phantom, types)
    assert read == ours
    theirs = tokenizers.Tokenizer.from_str(json.dumps(cr.io.tokenizers.to_hugging_face(ours)))
    for line in HARD:
        if "[" not in line:
            assert read.encode(line).tolist() == theirs.encode(line, add_special_tokens=False).ids


@pytest.mark.parametrize("weights", ["f32", "q8_0", "q4_0", "q4_1"])
@pytest.mark.parametrize("family", ["gpt", "llama"])
def test_they_read_ours(family: str, weights: str, tmp_path: Path) -> None:
    model: Any = (
        GPT(GPTConfig(2, 3, 96, 8, 11)) if family == "gpt" else Llama(LlamaConfig(2, 6, 3, 96, 64, 8, 11))
    )
    gguf.write(model, CharTokenizer("abcdefghij "), tmp_path / "x.gguf", weights=weights)
    read = peer.GGUFReader(tmp_path / "x.gguf")
    _, ours = file.read(tmp_path / "x.gguf")
    assert {t.name for t in read.tensors} == ours.keys()
    for tensor in read.tensors:
        theirs = peer.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(ours[tensor.name].array(), theirs.reshape(ours[tensor.name].shape))


OURS = {
    "gpt": GPTConfig(2, 3, 24, 1024, 300, activation="gelu_tanh"),  # they read no other context
    "llama": LlamaConfig(2, 6, 3, 36, 52, 8, 300),
    "qwen3": LlamaConfig(2, 6, 3, 36, 52, 8, 300, head_dim=128, variant="qwen3"),  # they read no other size
}


@pytest.mark.parametrize("name", OURS)
def test_transformers_reads_ours(name: str, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")  # which `transformers` asks for here
    model: Any = model_class(OURS[name])(OURS[name])
    tokenizer = cr.text.BPETokenizer.train(cr.data.load("pydoc").text[:9000], 300, pattern="gpt2")
    gguf.write(model.eval(), tokenizer, tmp_path / "x.gguf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="x.gguf")
    ids = RNG.integers(300, size=(2, 7))
    with torch.no_grad():
        want = theirs(torch.tensor(ids)).logits.numpy()
    with cr.no_grad():
        np.testing.assert_allclose(model(ids).numpy(), want, rtol=0, atol=1e-4)


KINDS = {
    "gpt2": "GPT2", "llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3", "phi3": "PHI3",
    "gemma": "GEMMA", "smollm3": "SMOLLM3", "gpt_neox": "GPTNEOX",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_we_read_what_is_converted_as_llama_cpp_does(kind: str, tmp_path: Path) -> None:
    theirs = decoder(kind)
    converted(theirs, kind, tmp_path / "x.gguf")
    ours, _ = gguf.read(tmp_path / "x.gguf", CharTokenizer("".join(map(chr, range(64, 64 + V)))))
    agree(ours, theirs)


def converted(model: Any, kind: str, path: Path) -> None:
    """A file by their package, with the names of their converter, and its rules for each kind."""
    config, arch = model.config, peer.MODEL_ARCH[KINDS[kind]]
    layers, width, heads = config.num_hidden_layers, config.hidden_size, config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", heads)
    writer = peer.GGUFWriter(path, peer.MODEL_ARCH_NAMES[arch])
    writer.add_block_count(layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(getattr(config, "intermediate_size", 4 * width))
    writer.add_head_count(heads)
    if kind in ("gpt2", "gpt_neox"):
        writer.add_layer_norm_eps(config.layer_norm_epsilon if kind == "gpt2" else config.layer_norm_eps)
    else:
        writer.add_head_count_kv(kv_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if kind in ("qwen3", "gemma"):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if kind == "gpt_neox":
        writer.add_rope_dimension_count(int(width // heads * config.rope_parameters["partial_rotary_factor"]))
        writer.add_parallel_residual(True)
    names = peer.get_tensor_name_map(arch, layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = tensor.numpy()
        if kind in ("llama", "mistral", "smollm3") and ("q_proj" in name or "k_proj" in name):
            count = heads if "q_proj" in name else kv_heads
            array = array.reshape(count, 2, -1, width).swapaxes(1, 2).reshape(array.shape)
        if kind == "gemma" and name.endswith("norm.weight"):
            array = array + 1
        if kind == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            array = array.T
        if "query_key_value" in name:
            array = array.reshape(heads, 3, width // heads, -1).swapaxes(0, 1).reshape(array.shape)
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
