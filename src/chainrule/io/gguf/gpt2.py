"""GPT in GGUF, as `gpt2`.

llama.cpp always uses the approximate GELU; the setting `chainrule.activation` records the exact one.
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import ConfigError
from chainrule.io.gguf.file import Stored
from chainrule.io.gguf.names import from_gguf, to_gguf, vocab_size
from chainrule.io.hf.gpt2 import ACTIVATIONS, WRITTEN, with_biases
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Settings
from chainrule.models import GPT, GPTConfig, NeoXConfig

KINDS = ("gpt2",)
MODEL = GPT
ACTIVATION = "chainrule.activation"
NAMES = {
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


def read_config(kind: str, settings: Settings, tensors: dict[str, Stored]) -> GPTConfig:
    """Our config from the settings and tensors of a file."""
    width = settings.integer("gpt2.embedding_length")
    inside = settings.integer("gpt2.feed_forward_length", default=4 * width)
    return GPTConfig(
        n_layer=settings.integer("gpt2.block_count"),
        n_head=settings.integer("gpt2.attention.head_count"),
        n_embd=width,
        n_hidden=None if inside == 4 * width else inside,
        block_size=settings.integer("gpt2.context_length"),
        vocab_size=vocab_size(tensors),
        activation=settings.choice(ACTIVATION, ACTIVATIONS, "gelu_new"),
        norm_eps=settings.number("gpt2.attention.layer_norm_epsilon"),
        tied="output.weight" not in tensors,
    )


def write_config(config: GPTConfig) -> tuple[str, dict[str, Any]]:
    """The kind and its settings."""
    return "gpt2", {
        "gpt2.block_count": config.n_layer,
        "gpt2.context_length": config.block_size,
        "gpt2.embedding_length": config.n_embd,
        "gpt2.feed_forward_length": config.inside,
        "gpt2.attention.head_count": config.n_head,
        "gpt2.attention.layer_norm_epsilon": config.norm_eps,
        ACTIVATION: written_activation(config),
    }


def written_activation(config: GPTConfig | NeoXConfig) -> str:
    """The name of the activation; llama.cpp has no GPT with ReLU."""
    if config.activation == "relu":
        raise ConfigError("gguf: activation is relu (must be gelu_tanh or gelu: llama.cpp has no other GPT)")
    return WRITTEN[config.activation]


def read_weights(kind: str, tensors: dict[str, Stored], config: GPTConfig) -> Arrays:
    """Arrays by our names, from llama.cpp's."""
    return from_gguf(tensors, NAMES)


def write_weights(state: Arrays, config: GPTConfig) -> Arrays:
    """Arrays by llama.cpp's names, from ours; it requires all biases."""
    return to_gguf(with_biases(state, config), NAMES)
