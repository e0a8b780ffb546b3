"""Llama and its variants in GGUF: `llama`, `qwen2`, `qwen3`, `phi3`, `gemma` and `smollm3`.

llama.cpp rotates the pairs (2i, 2i + 1) of some kinds, so the rows of queries and keys are reordered. Phi-3 has its
queries, keys and values in one matrix, and gate and up in another; of Gemma's norms the file has the weights plus 1.
Qwen 2 is written as a `llama` with biases.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from chainrule.errors import ConfigError
from chainrule.io.gguf.file import Stored
from chainrule.io.gguf.names import from_gguf, to_gguf, vocab_size
from chainrule.io.gguf.rope import TENSOR, read_scaling, write_scaling
from chainrule.io.hf.llama import fused, shorter_context, split_fused
from chainrule.io.hf.weights import halves_to_pairs, pairs_to_halves
from chainrule.io.lazy import Arrays, Matrix, later, moved
from chainrule.io.settings import Settings
from chainrule.models import Llama, LlamaConfig
from chainrule.models.llama import VARIANTS

KINDS = ("llama", "qwen2", "qwen3", "phi3", "gemma", "smollm3")
MODEL = Llama
TURNED_IN_PAIRS = ("llama", "smollm3")
NAMES = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "layers.#.input_layernorm": "blk.#.attn_norm",
    "layers.#.self_attn.q_proj": "blk.#.attn_q",
    "layers.#.self_attn.k_proj": "blk.#.attn_k",
    "layers.#.self_attn.v_proj": "blk.#.attn_v",
    "layers.#.self_attn.o_proj": "blk.#.attn_output",
    "layers.#.self_attn.q_norm": "blk.#.attn_q_norm",
    "layers.#.self_attn.k_norm": "blk.#.attn_k_norm",
    "layers.#.post_attention_layernorm": "blk.#.ffn_norm",
    "layers.#.mlp.gate_proj": "blk.#.ffn_gate",
    "layers.#.mlp.up_proj": "blk.#.ffn_up",
    "layers.#.mlp.down_proj": "blk.#.ffn_down",
}
FUSED = {"layers.#.self_attn.qkv_proj": "blk.#.attn_qkv", "layers.#.mlp.gate_up_proj": "blk.#.ffn_up"}


def read_config(kind: str, settings: Settings, tensors: dict[str, Stored]) -> LlamaConfig:
    """Our config from the settings and tensors of a file."""
    width = settings.integer(f"{kind}.embedding_length")
    heads = settings.integer(f"{kind}.attention.head_count")
    usual = width // max(heads, 1)
    size = settings.integer(f"{kind}.attention.key_length", default=usual)
    for name in ("attention.value_length", "rope.dimension_count"):
        settings.must(f"{kind}.{name}", size)
    settings.must(f"{kind}.expert_count", 0)
    base = settings.number(f"{kind}.rope.freq_base", default=10000.0)
    context = settings.integer(f"{kind}.context_length")
    window = settings.integer(f"{kind}.attention.sliding_window", default=0)
    return LlamaConfig(
        n_layer=settings.integer(f"{kind}.block_count"),
        n_head=heads,
        n_kv_head=settings.integer(f"{kind}.attention.head_count_kv", default=heads),
        n_embd=width,
        n_hidden=settings.integer(f"{kind}.feed_forward_length"),
        block_size=shorter_context(context, window or context),
        vocab_size=vocab_size(tensors),
        rope_base=base,
        norm_eps=settings.number(f"{kind}.attention.layer_norm_rms_epsilon"),
        tied="output.weight" not in tensors,
        head_dim=None if size * heads == width else size,
        attention_bias=_attention_bias(tensors),
        rope_scaling=read_scaling(kind, settings, tensors, size, base),
        variant=kind if kind in VARIANTS else "llama",
    )


def _attention_bias(tensors: dict[str, Stored]) -> str:
    if "blk.0.attn_output.bias" in tensors:
        return "all"
    return "qkv" if "blk.0.attn_q.bias" in tensors else "none"


def write_config(config: LlamaConfig) -> tuple[str, dict[str, Any]]:
    """The kind and its settings."""
    _check(config)
    scaling, _ = write_scaling(config)
    settings = {
        "block_count": config.n_layer,
        "context_length": config.block_size,
        "embedding_length": config.n_embd,
        "feed_forward_length": config.n_hidden,
        "attention.head_count": config.n_head,
        "attention.head_count_kv": config.n_kv_head,
        "attention.layer_norm_rms_epsilon": config.norm_eps,
        "attention.key_length": config.head_size,
        "attention.value_length": config.head_size,
        "rope.dimension_count": config.head_size,
        "rope.freq_base": config.rope_base,
        "vocab_size": config.vocab_size,
    }
    return config.variant, {f"{config.variant}.{name}": value for name, value in settings.items()} | scaling


def _check(config: LlamaConfig) -> None:
    """Refuse what llama.cpp's model of this kind does not have."""
    kind = config.variant
    for name, wrong, must in (
        ("attention_bias", kind != "llama" and config.attention_bias == "all", "none or qkv"),
        ("attention_bias", kind == "phi3" and config.attention_bias != "none", "none"),
        ("head_dim", kind == "phi3" and config.head_dim is not None, "n_embd / n_head"),
        ("tied", kind == "gemma" and not config.tied, "true"),
    ):
        if wrong:
            raise ConfigError(f"gguf: {name} is {getattr(config, name)} in a {kind} (must be {must})")


def read_weights(kind: str, tensors: dict[str, Stored], config: LlamaConfig) -> Arrays:
    """Arrays by our names, from llama.cpp's."""
    stored = {name: array for name, array in tensors.items() if name != TENSOR}  # read into the configuration
    if kind == "phi3":
        return split_fused(from_gguf(stored, NAMES | FUSED), config)
    found = _turned(kind, from_gguf(stored, NAMES), config, pairs_to_halves)
    return _shifted(found, -config.differs.norm_offset)


def write_weights(state: Arrays, config: LlamaConfig) -> Arrays:
    """Arrays by llama.cpp's names, from ours."""
    _, divisors = write_scaling(config)
    if config.variant == "phi3":
        return to_gguf(fused(state), NAMES | FUSED) | divisors
    state = _shifted(state, config.differs.norm_offset)
    return to_gguf(_turned(config.variant, state, config, halves_to_pairs), NAMES) | divisors


def _turned(kind: str, arrays: Arrays, config: LlamaConfig, turn: Any) -> Arrays:
    """Queries and keys in the rotary order of the other program; all else unchanged."""
    heads = {"q_proj": config.n_head, "k_proj": config.n_kv_head} if kind in TURNED_IN_PAIRS else {}

    def other(name: str, array: Matrix) -> Matrix:
        count = heads.get(name.split(".")[-2])
        return array if count is None else moved(partial(turn, heads=count), array)

    return {name: other(name, array) for name, array in arrays.items()}


def _shifted(arrays: Arrays, by: float) -> Arrays:
    """The weights of all norms plus a number."""
    moved = {name for name in arrays if by and name.endswith("norm.weight")}
    add = partial(np.add, by, dtype=np.float32)
    return {name: later(add, array) if name in moved else array for name, array in arrays.items()}
