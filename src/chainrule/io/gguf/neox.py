"""GPT-NeoX in GGUF, as `gptneox`: queries, keys and values in one matrix, all of one kind together.

llama.cpp always uses the approximate GELU; the setting `chainrule.activation` records another one.
"""

from __future__ import annotations

from typing import Any

from chainrule.io.gguf.file import Stored
from chainrule.io.gguf.gpt2 import ACTIVATION, written_activation
from chainrule.io.gguf.names import from_gguf, to_gguf, vocab_size
from chainrule.io.hf.gpt2 import ACTIVATIONS
from chainrule.io.hf.neox import join_qkv, split_qkv
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Settings
from chainrule.models import NeoX, NeoXConfig

KINDS = ("gptneox",)
MODEL = NeoX
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
    width = settings.integer("gptneox.embedding_length")
    heads = settings.integer("gptneox.attention.head_count")
    inside = settings.integer("gptneox.feed_forward_length")
    size = max(1, width // max(1, heads))
    turned = settings.integer("gptneox.rope.dimension_count", default=size)
    config = NeoXConfig(
        n_layer=settings.integer("gptneox.block_count"),
        n_head=heads,
        n_embd=width,
        n_hidden=None if inside == 4 * width else inside,
        block_size=settings.integer("gptneox.context_length"),
        vocab_size=vocab_size(tensors),
        activation=settings.choice(ACTIVATION, ACTIVATIONS, "gelu"),
        norm_eps=settings.number("gptneox.attention.layer_norm_epsilon"),
        tied="output.weight" not in tensors,
        rotary=turned / size,
        rope_base=settings.number("gptneox.rope.freq_base", default=10000.0),
        parallel=settings.flag("gptneox.use_parallel_residual", True),
    )
    settings.must("gptneox.rope.dimension_count", config.turned)
    return config


def write_config(config: NeoXConfig) -> tuple[str, dict[str, Any]]:
    """The kind and its settings."""
    return "gptneox", {
        "gptneox.block_count": config.n_layer,
        "gptneox.context_length": config.block_size,
        "gptneox.embedding_length": config.n_embd,
        "gptneox.feed_forward_length": config.inside,
        "gptneox.attention.head_count": config.n_head,
        "gptneox.attention.layer_norm_epsilon": config.norm_eps,
        "gptneox.rope.dimension_count": config.turned,
        "gptneox.rope.freq_base": config.rope_base,
        "gptneox.use_parallel_residual": config.parallel,
        ACTIVATION: written_activation(config),
    }


def read_weights(kind: str, tensors: dict[str, Stored], config: NeoXConfig) -> Arrays:
    """Arrays by our names, from llama.cpp's."""
    return split_qkv(from_gguf(tensors, NAMES), config, beside=False)


def write_weights(state: Arrays, config: NeoXConfig) -> Arrays:
    """Arrays by llama.cpp's names, from ours; it requires a head of its own."""
    found = to_gguf(join_qkv(state, config, beside=False), NAMES)
    return {"output.weight": found["token_embd.weight"]} | found
