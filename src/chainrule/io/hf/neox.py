"""GPT-NeoX (Pythia) as Hugging Face's `GPTNeoXForCausalLM`.

Its one matrix for queries, keys and values has those of a head side by side. Of a head the first `turned` numbers turn,
in pairs (i, i + turned/2); ours turn in pairs (i, i + D/2), and the pairs at the end of each half stand still.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from chainrule.errors import FormatError
from chainrule.io.hf.gpt2 import ACTIVATIONS, WRITTEN
from chainrule.io.hf.weights import drop_prefix, fuse_rows, renamed, split_rows, without_copies
from chainrule.io.lazy import Arrays, Matrix, later
from chainrule.io.settings import Fields, Settings, written
from chainrule.models import Model, NeoX, NeoXConfig

NAMES = ("gpt_neox",)
MODELS: dict[type[Any], type[Model]] = {NeoXConfig: NeoX}
PREFIX, HEAD = "gpt_neox.", "embed_out.weight"
UNUSED = (".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq")  # older files store these
FUSED, PARTS = "attention.query_key_value", ("attention.q_proj", "attention.k_proj", "attention.v_proj")
# Their names and ours.
LAYERS = {
    "embed_out": "lm_head",
    "layers.#.attention.dense": "layers.#.attention.o_proj",
    "layers.#.mlp.dense_h_to_4h": "layers.#.mlp.fc1",
    "layers.#.mlp.dense_4h_to_h": "layers.#.mlp.fc2",
}
FIELDS: Fields = {
    "n_layer": ("num_hidden_layers", 44), "n_head": ("num_attention_heads", 64), "n_embd": ("hidden_size", 6144),
    "block_size": ("max_position_embeddings", 2048), "vocab_size": ("vocab_size", 50432),
    "norm_eps": ("layer_norm_eps", 1e-5), "tied": ("tie_word_embeddings", False),
    "parallel": ("use_parallel_residual", True),
}  # fmt: skip
OURS = {ours: theirs for theirs, ours in LAYERS.items()}


def read_config(settings: Settings) -> NeoXConfig:
    """Our config from a `config.json`; options that NeoX lacks are refused."""
    settings.must("attention_bias", True)
    rope = settings.section("rope_parameters")  # newer files
    for section in (rope, settings.section("rope_scaling")):
        section.must("rope_type", "default")
        section.must("type", "default")
    sizes = settings.fields(FIELDS)
    inside = settings.integer("intermediate_size", default=24576)
    fraction = settings.number("rotary_pct", default=0.25)
    base = settings.number("rotary_emb_base", default=10000.0)
    config = NeoXConfig(
        **sizes,
        n_hidden=None if inside == 4 * sizes["n_embd"] else inside,
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        rotary=rope.number("partial_rotary_factor", default=fraction),
        rope_base=rope.number("rope_theta", default=base),
    )
    if _turned(config) != config.turned:
        D, n = config.head_size, _turned(config)
        raise FormatError(f"rotary_pct is {config.rotary}: {n} of {D} numbers of a head turn (must be even)")
    return config


def _turned(config: NeoXConfig) -> int:
    """Numbers of a head that turn there."""
    return int(config.head_size * config.rotary)


def write_config(config: NeoXConfig) -> dict[str, Any] | None:
    """The content of `config.json`; None if another number of pairs would turn there, as in very small heads."""
    if _turned(config) != config.turned:
        return None
    return {
        "model_type": "gpt_neox",
        "architectures": ["GPTNeoXForCausalLM"],
        **written(config, FIELDS),
        "intermediate_size": config.inside,
        "hidden_act": WRITTEN[config.activation],
        "rotary_pct": config.rotary,
        "rotary_emb_base": config.rope_base,
        "attention_bias": True,
    }


def read_weights(tensors: Arrays, config: NeoXConfig) -> Arrays:
    """Arrays by our names and shapes, from Hugging Face's."""
    found = drop_prefix(tensors, PREFIX)
    found = {name: array for name, array in found.items() if not name.endswith(UNUSED)}
    found = renamed(split_qkv(found, config), LAYERS)
    return without_copies(found, {"lm_head.weight": "embed_in.weight"}) if config.tied else found


def write_weights(state: Arrays, config: NeoXConfig) -> Arrays:
    """Arrays by Hugging Face's names and shapes, from ours."""
    found = renamed(join_qkv(state, config), OURS)
    return {name if name == HEAD else PREFIX + name: array for name, array in found.items()}


def split_qkv(arrays: Arrays, config: NeoXConfig, *, beside: bool = True) -> Arrays:
    """Queries, keys and values out of one matrix: those of a head `beside` each other, or all of one kind together."""
    sorted_rows = _taken(arrays, _rows(config, beside))
    return split_rows(sorted_rows, FUSED, dict.fromkeys(PARTS, config.n_embd))


def join_qkv(state: Arrays, config: NeoXConfig, *, beside: bool = True) -> Arrays:
    """The inverse of `split_qkv`."""
    return _taken(fuse_rows(state, FUSED, PARTS), np.argsort(_rows(config, beside)))


def _taken(arrays: Arrays, rows: Matrix) -> Arrays:
    """The rows of fused matrices in another order."""
    take = partial(np.take, indices=rows, axis=0)
    return {name: later(take, array) if f"{FUSED}." in name else array for name, array in arrays.items()}


def _rows(config: NeoXConfig, beside: bool) -> Matrix:
    """Of each row of our queries, keys and values, in this order, the row of their matrix."""
    H, D = config.n_head, config.head_size
    theirs = np.arange(3 * H * D).reshape((H, 3, D) if beside else (3, H, D))
    q, k, v = theirs.swapaxes(0, 1) if beside else theirs  # (H, D) each
    turned, standing = np.split(np.arange(D), [config.turned])
    halves = zip(np.split(turned, 2), np.split(standing, 2), strict=True)
    order = np.concatenate([part for half in halves for part in half])
    return np.stack([q[:, order], k[:, order], v]).ravel()
