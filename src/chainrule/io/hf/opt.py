"""OPT, read as a GPT with ReLU. It is written as GPT-2, which has that activation too.

OPT keeps queries, keys and values apart, and begins its table of positions with two rows for padding.
"""

from __future__ import annotations

from typing import Any

from chainrule.io.hf.gpt2 import ACTIVATIONS
from chainrule.io.hf.weights import drop_prefix, fuse_rows, renamed, without_copies, without_rows
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Settings
from chainrule.models import GPT, GPTConfig, Model

NAMES = ("opt",)
MODELS: dict[type[Any], type[Model]] = {GPTConfig: GPT}
PREFIXES, HEAD = ("model.decoder.", "decoder."), "lm_head.weight"
OFFSET = 2  # rows of positions that only padding uses
# OPT's names and ours.
LAYERS = {
    "embed_tokens": "wte",
    "embed_positions": "wpe",
    "final_layer_norm": "ln_f",
    "layers.#.self_attn_layer_norm": "h.#.ln_1",
    "layers.#.attn.c_attn": "h.#.attn.c_attn",
    "layers.#.self_attn.out_proj": "h.#.attn.c_proj",
    "layers.#.final_layer_norm": "h.#.ln_2",
    "layers.#.fc1": "h.#.mlp.c_fc",
    "layers.#.fc2": "h.#.mlp.c_proj",
}


def read_config(settings: Settings) -> GPTConfig:
    """Our config from a `config.json`; options that GPT lacks are refused."""
    width = settings.integer("hidden_size", default=768)
    settings.must("do_layer_norm_before", True)
    settings.must("_remove_final_layer_norm", False)
    settings.must("word_embed_proj_dim", width)
    settings.must("enable_bias", True)
    settings.must("layer_norm_elementwise_affine", True)
    inside = settings.integer("ffn_dim", default=3072)
    return GPTConfig(
        n_layer=settings.integer("num_hidden_layers", default=12),
        n_head=settings.integer("num_attention_heads", default=12),
        n_embd=width,
        n_hidden=None if inside == 4 * width else inside,
        block_size=settings.integer("max_position_embeddings", default=2048),
        vocab_size=settings.integer("vocab_size", default=50272),
        dropout=settings.number("attention_dropout", default=0.0),
        activation=settings.choice("activation_function", ACTIVATIONS, "relu"),
        tied=settings.flag("tie_word_embeddings", True),
    )


def read_weights(tensors: Arrays, config: GPTConfig) -> Arrays:
    """Arrays by our names and shapes, from Hugging Face's."""
    parts = [f"self_attn.{name}_proj" for name in "qkv"]
    found = renamed(fuse_rows(drop_prefix(tensors, *PREFIXES), "attn.c_attn", parts), LAYERS)
    if "wpe.weight" in found:
        found["wpe.weight"] = without_rows("embed_positions.weight", found["wpe.weight"], OFFSET)
    return without_copies(found, {HEAD: "wte.weight"}) if config.tied else found
