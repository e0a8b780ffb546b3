"""Models in GGUF, the file of llama.cpp: `llama` and `gpt2`.

llama.cpp rotates the pairs (2i, 2i + 1), so the rows of queries and keys are reordered. Its GPT-2 always uses the
approximate GELU; the setting `chainrule.activation` records the exact one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, ConfigError, FormatError
from chainrule.io.gguf import file, rope
from chainrule.io.gguf.blocks import BLOCK, F32, Q8_0
from chainrule.io.gguf.conventions import read_conventions, write_conventions
from chainrule.io.gguf.file import MAGIC, Stored
from chainrule.io.gguf.rope import read_scaling, write_scaling
from chainrule.io.gguf.tokenizers import read_tokenizer, write_tokenizer
from chainrule.io.hf.architectures import check_size
from chainrule.io.hf.gpt2 import ACTIVATIONS, with_biases
from chainrule.io.hf.weights import halves_to_pairs, pairs_to_halves
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Settings
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, Model
from chainrule.nn import frequencies
from chainrule.nn.init import unfilled
from chainrule.text import Tokenizer

__all__ = ["MAGIC", "read", "write"]

FORMATS = {"f32": F32, "q8_0": Q8_0}

# Our names and llama.cpp's, without the number of the layer and the last part, weight or bias.
LLAMA = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "layers.#.input_layernorm": "blk.#.attn_norm",
    "layers.#.self_attn.q_proj": "blk.#.attn_q",
    "layers.#.self_attn.k_proj": "blk.#.attn_k",
    "layers.#.self_attn.v_proj": "blk.#.attn_v",
    "layers.#.self_attn.o_proj": "blk.#.attn_output",
    "layers.#.post_attention_layernorm": "blk.#.ffn_norm",
    "layers.#.mlp.gate_proj": "blk.#.ffn_gate",
    "layers.#.mlp.up_proj": "blk.#.ffn_up",
    "layers.#.mlp.down_proj": "blk.#.ffn_down",
}
GPT2 = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "lm_head": "output",
    "h.#.ln_1": "blk.#.attn_norm",
    "h.#.attn.c_attn": "blk.#.attn_qkv",
    "h.#.attn.c_proj": "blk.#.attn_output",
    "h.#.ln_2": "blk.#.ffn_norm",
    "h.#.mlp.c_fc": "blk.#.ffn_up",
    "h.#.mlp.c_proj": "blk.#.ffn_down",
}


def read(path: Path) -> tuple[Model, Tokenizer]:
    """The model, for evaluation, and the tokenizer of a file."""
    try:
        metadata, tensors = file.read(path)
        settings = Settings(metadata)
        kind = metadata.get("general.architecture")
        if kind not in ("llama", "gpt2"):
            raise FormatError(f"general.architecture is {kind!r} (must be llama or gpt2)")
        tokenizer = read_tokenizer(settings)
        config = (_llama_config if kind == "llama" else _gpt2_config)(settings, tensors)
        check_size(config.n_params, tensors, config.n_layer)
        with unfilled():
            model: Model = Llama(config) if isinstance(config, LlamaConfig) else GPT(config)
        model.load(_from_gguf(tensors, config))
        if tokenizer.vocab_size > config.vocab_size:
            raise FormatError(f"tokenizer of {tokenizer.vocab_size} tokens, model of {config.vocab_size}")
        tokenizer.conventions = read_conventions(settings, tokenizer)
        return model.eval(), tokenizer
    except ChainruleError as error:
        raise FormatError(f"{path}: {error}") from error


def write(model: Model, tokenizer: Tokenizer, path: Path, *, weights: str = "f32") -> None:
    """Write a file; with `weights` q8_0, matrices whose rows are multiples of 32 are stored in blocks with a scale."""
    if not isinstance(model, GPT | Llama):
        raise ConfigError(f"gguf: cannot hold a {type(model).__name__} (must be a GPT or a Llama)")
    llama = isinstance(model, Llama)
    metadata = {
        "general.architecture": "llama" if llama else "gpt2",
        "general.file_type": 7 if weights == "q8_0" else 0,
    }
    metadata |= _llama_settings(model.config) if llama else _gpt2_settings(model.config)
    slower, divisors = write_scaling(model.config) if llama else ({}, {})
    arrays = {}
    for name, array in (_to_gguf(model) | divisors).items():
        fits = array.ndim == 2 and array.shape[1] % BLOCK == 0
        arrays[name] = FORMATS[weights] if fits else F32, array
    metadata |= slower | write_tokenizer(tokenizer) | write_conventions(tokenizer)
    file.write(path, metadata, arrays)


def _llama_config(settings: Settings, tensors: dict[str, Stored]) -> LlamaConfig:
    width, heads = settings.integer("llama.embedding_length"), settings.integer("llama.attention.head_count")
    usual = width // max(heads, 1)
    size = settings.integer("llama.attention.key_length", default=usual)
    for name in ("llama.attention.value_length", "llama.rope.dimension_count"):
        settings.must(name, size)
    settings.must("llama.expert_count", 0)
    base = settings.number("llama.rope.freq_base", default=10000.0)
    return LlamaConfig(
        n_layer=settings.integer("llama.block_count"),
        n_head=heads,
        n_kv_head=settings.integer("llama.attention.head_count_kv", default=heads),
        n_embd=width,
        n_hidden=settings.integer("llama.feed_forward_length"),
        block_size=settings.integer("llama.context_length"),
        vocab_size=_vocab_size(tensors),
        rope_base=base,
        norm_eps=settings.number("llama.attention.layer_norm_rms_epsilon"),
        tied="output.weight" not in tensors,
        head_dim=None if size * heads == width else size,
        attention_bias=_attention_bias(tensors),
        rope_scaling=read_scaling(settings, tensors, frequencies(size, base)),
    )


def _attention_bias(tensors: dict[str, Stored]) -> str:
    if "blk.0.attn_output.bias" in tensors:
        return "all"
    return "qkv" if "blk.0.attn_q.bias" in tensors else "none"


def _llama_settings(config: LlamaConfig) -> dict[str, Any]:
    return {
        "llama.block_count": config.n_layer,
        "llama.context_length": config.block_size,
        "llama.embedding_length": config.n_embd,
        "llama.feed_forward_length": config.n_hidden,
        "llama.attention.head_count": config.n_head,
        "llama.attention.head_count_kv": config.n_kv_head,
        "llama.attention.layer_norm_rms_epsilon": config.norm_eps,
        "llama.attention.key_length": config.head_size,
        "llama.attention.value_length": config.head_size,
        "llama.rope.dimension_count": config.head_size,
        "llama.rope.freq_base": config.rope_base,
        "llama.vocab_size": config.vocab_size,
    }


def _gpt2_config(settings: Settings, tensors: dict[str, Stored]) -> GPTConfig:
    width = settings.integer("gpt2.embedding_length")
    inside = settings.integer("gpt2.feed_forward_length", default=4 * width)
    return GPTConfig(
        n_layer=settings.integer("gpt2.block_count"),
        n_head=settings.integer("gpt2.attention.head_count"),
        n_embd=width,
        n_hidden=None if inside == 4 * width else inside,
        block_size=settings.integer("gpt2.context_length"),
        vocab_size=_vocab_size(tensors),
        activation=settings.choice("chainrule.activation", ACTIVATIONS, "gelu_new"),
        norm_eps=settings.number("gpt2.attention.layer_norm_epsilon"),
        tied="output.weight" not in tensors,
    )


def _gpt2_settings(config: GPTConfig) -> dict[str, Any]:
    return {
        "gpt2.block_count": config.n_layer,
        "gpt2.context_length": config.block_size,
        "gpt2.embedding_length": config.n_embd,
        "gpt2.feed_forward_length": config.inside,
        "gpt2.attention.head_count": config.n_head,
        "gpt2.attention.layer_norm_epsilon": config.norm_eps,
        "chainrule.activation": "gelu" if config.activation == "gelu" else "gelu_new",
    }


def _vocab_size(tensors: dict[str, Stored]) -> int:
    if "token_embd.weight" not in tensors:
        raise FormatError("token_embd.weight is missing (must hold the embedding)")
    return tensors["token_embd.weight"].shape[0]


def _from_gguf(tensors: dict[str, Stored], config: GPTConfig | LlamaConfig) -> Arrays:
    names = {theirs: ours for ours, theirs in (LLAMA if isinstance(config, LlamaConfig) else GPT2).items()}
    state = {}
    for name, stored in tensors.items():
        if name == rope.TENSOR:
            continue  # read into the configuration
        array = stored.array()
        if heads := _turned_heads(name, config):
            array = pairs_to_halves(array, heads)
        state[_rename(name, names)] = array
    return state


def _to_gguf(model: GPT | Llama) -> Arrays:
    config, state = model.config, model.state()
    names = LLAMA if isinstance(model, Llama) else GPT2
    if isinstance(model, GPT):
        state = with_biases(state, config)  # llama.cpp requires them
    found = {_rename(name, names): array for name, array in state.items()}
    for name, array in found.items():
        if heads := _turned_heads(name, config):
            found[name] = halves_to_pairs(array, heads)
    return found


def _turned_heads(name: str, config: GPTConfig | LlamaConfig) -> int:
    """The number of heads of an array whose rows are reordered for rotation; 0 for all others."""
    if isinstance(config, LlamaConfig) and ("attn_q." in name or "attn_k." in name):
        return config.n_head if "attn_q" in name else config.n_kv_head
    return 0


def _rename(name: str, names: dict[str, str]) -> str:
    number = re.search(r"\.(\d+)\.", name)
    stem, _, last = re.sub(r"\.\d+\.", ".#.", name, count=1).rpartition(".")
    if stem not in names:
        raise FormatError(f"tensor {name!r} (has no place in this model)")
    return f"{names[stem].replace('#', number[1]) if number else names[stem]}.{last}"
