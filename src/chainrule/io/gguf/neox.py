"""GPT-NeoX in GGUF, as `gptneox`: queries, keys and values in one matrix, all of one kind together.

llama.cpp always uses the approximate GELU; the setting `chainrule.activation` records another one.
"""

from __future__ import annotations

from typing import Any

from chainrule.io.gguf.file import Stored
from chainrule.io.gguf.gpt2 import ACTIVATION, read_sizes, sizes, written_activation
from chainrule.io.gguf.names import from_gguf, to_gguf
from chainrule.io.hf.gpt2 import ACTIVATIONS
from chainrule.io.hf.neox import join_qkv, split_qkv
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Settings, written
from chainrule.models import NeoX, NeoXConfig

KINDS = ("gptneox",)
MODEL = NeoX
TURNED = "gptneox.rope.dimension_count"
POSITIONS: dict[str, Any] = {
    "turned": (TURNED, int),
    "rope_base": ("gptneox.rope.freq_base", 10000.0),
    "parallel": ("gptneox.use_parallel_residual", True),
}
NAMES = {
    "embed_in": "token_embd",
    "final_layer_norm": "output_norm",
    "lm_head": "output",
    "layers.#.input_layernorm": "blk.#.attn_norm",
    "layers.#.attention.query_key_value": "blk.#.attn_qkv",
    "layers.#.attention.o_proj": "blk.#.attn_output",
    "layers.#.post_attention_layernorm": "blk.#.ffn_norm",
    "layers.#.mlp.fc1": "blk.#.ffn_up",
    "layers.#.mlp.fc2": "blk.#.ffn_down",
}


def read_config(kind: str, settings: Settings, tensors: dict[str, Stored]) -> NeoXConfig:
    """Our config from the settings and tensors of a file."""
    found = read_sizes(settings, tensors, sizes("gptneox"))
    size = max(1, found["n_embd"] // max(1, found["n_head"]))
    found |= settings.fields(POSITIONS | {"turned": (TURNED, size)})
    rotary = found.pop("turned") / size
    activation = settings.choice(ACTIVATION, ACTIVATIONS, "gelu")
    config = NeoXConfig(**found, rotary=rotary, activation=activation)
    settings.must(TURNED, config.turned)
    return config


def write_config(config: NeoXConfig) -> tuple[str, dict[str, Any]]:
    """The kind and its settings."""
    known = written(config, sizes("gptneox") | POSITIONS)
    return "gptneox", known | {ACTIVATION: written_activation(config)}


def read_weights(kind: str, tensors: dict[str, Stored], config: NeoXConfig) -> Arrays:
    """Arrays by our names, from llama.cpp's."""
    return split_qkv(from_gguf(tensors, NAMES), config, beside=False)


def write_weights(state: Arrays, config: NeoXConfig) -> Arrays:
    """Arrays by llama.cpp's names, from ours; it requires a head of its own."""
    found = to_gguf(join_qkv(state, config, beside=False), NAMES)
    return {"output.weight": found["token_embd.weight"]} | found
