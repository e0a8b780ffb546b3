"""Llama as Hugging Face's `LlamaForCausalLM`: the same names, layout and rotary pairs as ours.

With biases only in queries, keys and values it is `Qwen2ForCausalLM`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chainrule.io.hf.weights import drop_prefix, without_copies
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Settings
from chainrule.models import Llama, LlamaConfig, Model
from chainrule.nn.rope_scaling import KINDS, LinearScaling, Llama3Scaling, RopeScaling

NAMES = ("llama", "qwen2")
MODELS: dict[type[Any], type[Model]] = {LlamaConfig: Llama}
PREFIX, HEAD = "model.", "lm_head.weight"
# Hugging Face's defaults of fields that a file leaves out, where they differ from Llama's.
QWEN = {"intermediate_size": 22016, "max_position_embeddings": 32768, "vocab_size": 151936}
UNUSED = ("rotary_emb.inv_freq",)  # older files store the frequencies


def read_config(settings: Settings) -> LlamaConfig:
    """Our config from a `config.json`; options that Llama lacks are refused."""
    qwen = settings.values.get("model_type") == "qwen2"
    settings = Settings(QWEN | settings.values) if qwen else settings
    width = settings.integer("hidden_size", default=4096)
    heads = settings.integer("num_attention_heads", default=32)
    size = settings.integer("head_dim") if settings.has("head_dim") else None
    settings.must("hidden_act", "silu")
    settings.must("mlp_bias", False)
    settings.must("use_sliding_window", False)
    settings.must("partial_rotary_factor", 1.0, 1)
    context = settings.integer("max_position_embeddings", default=2048)
    rope = settings.section("rope_parameters")  # newer files; older ones use two fields
    base = settings.number("rope_theta", default=10000.0)
    return LlamaConfig(
        n_layer=settings.integer("num_hidden_layers", default=32),
        n_head=heads,
        n_kv_head=settings.integer("num_key_value_heads", default=heads),
        n_embd=width,
        n_hidden=settings.integer("intermediate_size", default=11008),
        block_size=context,
        vocab_size=settings.integer("vocab_size", default=32000),
        rope_base=rope.number("rope_theta", default=base),
        norm_eps=settings.number("rms_norm_eps", default=1e-6),
        tied=settings.flag("tie_word_embeddings", False),
        head_dim=None if heads and size == width / heads else size,
        rope_scaling=read_scaling(settings.section("rope_scaling"), context) or read_scaling(rope, context),
        attention_bias="qkv" if qwen else "all" if settings.flag("attention_bias", False) else "none",
    )


def read_scaling(section: Settings, context: int) -> RopeScaling | None:
    """The scaling of rotary positions; older files say type, newer ones rope_type."""
    section.must("partial_rotary_factor", 1.0, 1)
    kinds = {name: name for name in ("default", *KINDS)}
    kind = section.choice("rope_type" if section.has("rope_type") else "type", kinds, "default")
    if kind == "default":
        return None
    if kind == "linear":
        return LinearScaling(section.number("factor"))
    return Llama3Scaling(
        factor=section.number("factor"),
        low_freq_factor=section.number("low_freq_factor"),
        high_freq_factor=section.number("high_freq_factor"),
        original_max_position_embeddings=section.integer("original_max_position_embeddings", default=context),
    )


def write_config(config: LlamaConfig) -> dict[str, Any] | None:
    """The content of `config.json`; None if the heads do not divide the width, which transformers requires."""
    if config.n_embd % config.n_head:
        return None
    qwen = config.attention_bias == "qkv"
    return {
        "model_type": "qwen2" if qwen else "llama",
        "architectures": ["Qwen2ForCausalLM" if qwen else "LlamaForCausalLM"],
        "attention_bias": config.attention_bias != "none",
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.n_kv_head,
        "head_dim": config.head_size,
        "hidden_size": config.n_embd,
        "intermediate_size": config.n_hidden,
        "max_position_embeddings": config.block_size,
        "vocab_size": config.vocab_size,
        "rope_theta": config.rope_base,
        "rope_scaling": None if config.rope_scaling is None else asdict(config.rope_scaling),
        "rms_norm_eps": config.norm_eps,
        "hidden_act": "silu",
        "tie_word_embeddings": config.tied,
    }


def read_weights(tensors: Arrays, config: LlamaConfig) -> Arrays:
    """Arrays by our names, from Hugging Face's."""
    found = drop_prefix(tensors, PREFIX)
    found = {name: array for name, array in found.items() if not name.endswith(UNUSED)}
    return without_copies(found, {HEAD: "embed_tokens.weight"}) if config.tied else found


def write_weights(state: Arrays, config: LlamaConfig) -> Arrays:
    """Arrays by Hugging Face's names, from ours."""
    return {name if name == HEAD else PREFIX + name: array for name, array in state.items()}
