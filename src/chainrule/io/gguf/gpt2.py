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
from chainrule.io.settings import Fields, Settings, written
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
    inside = 4 * settings.integer("gpt2.embedding_length")
    return GPTConfig(
        **read_sizes(settings, tensors, sizes("gpt2", inside)),
        activation=settings.choice(ACTIVATION, ACTIVATIONS, "gelu_new"),
    )


def write_config(config: GPTConfig) -> tuple[str, dict[str, Any]]:
    """The kind and its settings."""
    return "gpt2", written(config, sizes("gpt2")) | {ACTIVATION: written_activation(config)}


def sizes(kind: str, inside: int | type = int) -> dict[str, tuple[str, int | type]]:
    """Fields of a GPT by their names in a file of this kind; `inside` is the width of an MLP if it is left out."""
    names = {
        "n_layer": ("block_count", int),
        "block_size": ("context_length", int),
        "n_embd": ("embedding_length", int),
        "inside": ("feed_forward_length", inside),
        "n_head": ("attention.head_count", int),
        "norm_eps": ("attention.layer_norm_epsilon", float),
    }
    return {ours: (f"{kind}.{theirs}", usual) for ours, (theirs, usual) in names.items()}


def read_sizes(settings: Settings, tensors: dict[str, Stored], table: Fields) -> dict[str, Any]:
    """The fields of a table and what the tensors say; the width of an MLP is left open where it is the usual one."""
    found = settings.fields(table)
    inside = found.pop("inside")
    found["n_hidden"] = None if inside == 4 * found["n_embd"] else inside
    return found | {"vocab_size": vocab_size(tensors), "tied": "output.weight" not in tensors}


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
