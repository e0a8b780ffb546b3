"""Llama and its variants as Hugging Face's `LlamaForCausalLM`, `Qwen3ForCausalLM` and others.

Names, layout and rotary pairs are ours. With biases only in queries, keys and values it is `Qwen2ForCausalLM`; Mistral
is read as a Llama. Phi-3 stores queries, keys and values in one matrix, and gate and up in another.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

from chainrule.errors import ChainruleWarning, FormatError
from chainrule.io.hf.weights import drop_prefix, fuse_rows, split_rows, without_copies
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Fields, Settings, written
from chainrule.models import Llama, LlamaConfig, Model
from chainrule.models.llama import VARIANTS
from chainrule.nn.rope_scaling import KINDS, LinearScaling, Llama3Scaling, RopeScaling

MODELS: dict[type[Any], type[Model]] = {LlamaConfig: Llama}
PREFIX, HEAD = "model.", "lm_head.weight"
# Hugging Face's defaults of fields that a file leaves out, where they differ from Llama's.
DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    },
    "qwen2": {"intermediate_size": 22016, "max_position_embeddings": 32768, "vocab_size": 151936},
    "qwen3": {
        "intermediate_size": 22016, "max_position_embeddings": 32768, "vocab_size": 151936, "head_dim": 128,
    },
    "phi3": {
        "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096, "vocab_size": 32064,
        "rms_norm_eps": 1e-5,
    },
    "gemma": {
        "num_hidden_layers": 28, "num_attention_heads": 16, "head_dim": 256, "hidden_size": 3072,
        "intermediate_size": 24576, "max_position_embeddings": 8192, "vocab_size": 256000,
        "tie_word_embeddings": True, "hidden_act": "gelu_pytorch_tanh",
    },
    "smollm3": {
        "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_size": 2048,
        "max_position_embeddings": 32768, "vocab_size": 128256, "rope_theta": 2e6, "tie_word_embeddings": True,
    },
}  # fmt: skip
FIELDS: Fields = {
    "n_layer": ("num_hidden_layers", 32), "n_head": ("num_attention_heads", 32), "n_embd": ("hidden_size", 4096),
    "n_hidden": ("intermediate_size", 11008), "vocab_size": ("vocab_size", 32000), "norm_eps": ("rms_norm_eps", 1e-6),
    "tied": ("tie_word_embeddings", False),
}  # fmt: skip
NAMES = tuple(DEFAULTS)
CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}
UNUSED = ("rotary_emb.inv_freq",)  # older files store the frequencies
# Matrices of Phi-3, and of what they consist.
QKV, GATE_UP = "self_attn.qkv_proj", "mlp.gate_up_proj"
FUSED = {
    QKV: ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    GATE_UP: ("mlp.gate_proj", "mlp.up_proj"),
}


def read_config(settings: Settings) -> LlamaConfig:
    """Our config from a `config.json`; options that Llama lacks are refused."""
    kind = str(settings.values.get("model_type"))
    settings = Settings(DEFAULTS[kind] | settings.values)
    sizes = settings.fields(FIELDS)
    width, heads = sizes["n_embd"], sizes["n_head"]
    size = settings.integer("head_dim") if settings.has("head_dim") else None
    _check(kind, settings)
    context = _context(kind, settings)
    rope = settings.section("rope_parameters")  # newer files; older ones use two fields
    base = settings.number("rope_theta", default=10000.0)
    biases = "all" if settings.flag("attention_bias", False) else "none"
    return LlamaConfig(
        **sizes,
        n_kv_head=settings.integer("num_key_value_heads", default=heads),
        block_size=context,
        rope_base=rope.number("rope_theta", default=base),
        head_dim=None if heads and size == width / heads else size,
        rope_scaling=read_scaling(settings.section("rope_scaling"), context) or read_scaling(rope, context),
        attention_bias="qkv" if kind == "qwen2" else biases,
        variant=kind if kind in VARIANTS else "llama",
    )


def _check(kind: str, settings: Settings) -> None:
    """Refuse what neither Llama nor the variant does."""
    if kind == "gemma":
        # Older files say gelu and mean the approximation.
        settings.must("hidden_act", "gelu_pytorch_tanh", "gelu")
        settings.must("hidden_activation", "gelu_pytorch_tanh")
        settings.must("use_bidirectional_attention", False)
    else:
        settings.must("hidden_act", "silu")
    settings.must("mlp_bias", False)
    settings.must("use_sliding_window", False)
    settings.must("partial_rotary_factor", 1.0, 1)
    windows = settings.values.get("layer_types")
    if isinstance(windows, list) and "sliding_attention" in windows:
        raise FormatError("layer_types has sliding_attention (is not supported, must be full_attention)")
    every = VARIANTS[kind].unturned_every if kind in VARIANTS else None
    if every:
        settings.must("no_rope_layer_interval", every)
        turned = settings.values.get("no_rope_layers")
        said = range(len(turned) if isinstance(turned, list) else 0)
        settings.must("no_rope_layers", [int((number + 1) % every != 0) for number in said])


def _context(kind: str, settings: Settings) -> int:
    """The longest context."""
    context = settings.integer("max_position_embeddings", default=2048)
    if kind not in ("mistral", "phi3") or not settings.has("sliding_window"):
        return context
    return shorter_context(context, settings.integer("sliding_window"))


def shorter_context(context: int, window: int) -> int:
    """The context, or that of a sliding window if it is shorter: up to there the window changes nothing."""
    if window >= context:
        return context
    warnings.warn(
        f"the context is {window} tokens here, not {context}: beyond, this model attends to a sliding window only "
        f"(sliding_window is {window})",
        ChainruleWarning,
        stacklevel=2,
    )
    return window


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
    """The content of `config.json`; None if no class of transformers is this model."""
    kind = "qwen2" if (config.variant, config.attention_bias) == ("llama", "qkv") else config.variant
    if not _has_class(config, kind):
        return None
    more: dict[str, Any] = {}
    if config.differs.unturned_every:
        more["no_rope_layer_interval"] = config.differs.unturned_every
    return more | {
        "model_type": kind,
        "architectures": [CLASSES[kind]],
        "attention_bias": config.attention_bias != "none",
        **written(config, FIELDS),
        "num_key_value_heads": config.n_kv_head,
        "head_dim": config.head_size,
        "max_position_embeddings": config.block_size,
        "rope_theta": config.rope_base,
        "rope_scaling": None if config.rope_scaling is None else asdict(config.rope_scaling),
        "hidden_act": "gelu_pytorch_tanh" if config.differs.gate == "gelu_tanh" else "silu",
    }


def _has_class(config: LlamaConfig, kind: str) -> bool:
    """What transformers demands of each class."""
    if kind == "llama":
        return config.n_embd % config.n_head == 0
    if kind == "phi3":
        return config.attention_bias == "none" and config.rope_scaling is None
    return kind == "qwen2" or config.attention_bias != "qkv"


def read_weights(tensors: Arrays, config: LlamaConfig) -> Arrays:
    """Arrays by our names, from Hugging Face's."""
    found = drop_prefix(tensors, PREFIX)
    found = {name: array for name, array in found.items() if not name.endswith(UNUSED)}
    if config.variant == "phi3":
        found = split_fused(found, config)
    return without_copies(found, {HEAD: "embed_tokens.weight"}) if config.tied else found


def write_weights(state: Arrays, config: LlamaConfig) -> Arrays:
    """Arrays by Hugging Face's names, from ours."""
    if config.variant == "phi3":
        state = fused(state)
    return {name if name == HEAD else PREFIX + name: array for name, array in state.items()}


def split_fused(arrays: Arrays, config: LlamaConfig) -> Arrays:
    """The parts of Phi-3's fused matrices."""
    heads, size = (config.n_head, config.n_kv_head, config.n_kv_head), config.head_size
    rows = {QKV: [n * size for n in heads], GATE_UP: [config.n_hidden] * 2}
    for name, parts in FUSED.items():
        arrays = split_rows(arrays, name, dict(zip(parts, rows[name], strict=True)))
    return arrays


def fused(arrays: Arrays) -> Arrays:
    """The inverse of `split_fused`."""
    for name, parts in FUSED.items():
        arrays = fuse_rows(arrays, name, parts)
    return arrays
