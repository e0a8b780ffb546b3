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
from chainrule.io.settings import Settings
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
OURS = {ours: theirs for theirs, ours in LAYERS.items()}


def read_config(settings: Settings) -> NeoXConfig:
    """Our config from a `config.json`; options that NeoX lacks are refused."""
    settings.must("attention_bias", True)
    rope = settings.section("rope_parameters")  # newer files
    for section in (rope, settings.section("rope_scaling")):
        section.must("rope_type", "default")
        section.must("type", "default")
    width = settings.integer("hidden_size", default=6144)
    inside = settings.integer("intermediate_size", default=24576)
    fraction = settings.number("rotary_pct", default=0.25)
    base = settings.number("rotary_emb_base", default=10000.0)
    config = NeoXConfig(
        n_layer=settings.integer("num_hidden_layers", default=44),
        n_head=settings.integer("num_attention_heads", default=64),
        n_embd=width,
        n_hidden=None if inside == 4 * width else inside,
        block_size=settings.integer("max_position_embeddings", default=2048),
        vocab_size=settings.integer("vocab_size", default=50432),
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_eps=settings.number("layer_norm_eps", default=1e-5),
        tied=settings.flag("tie_word_embeddings", False),
        rotary=rope.number("partial_rotary_factor", default=fraction),
        rope_base=rope.number("rope_theta", default=base),
        parallel=settings.flag("use_parallel_residual", True),
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
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "hidden_size": config.n_embd,
        "intermediate_size": config.inside,
        "max_position_embeddings": config.block_size,
        "vocab_size": config.vocab_size,
        "hidden_act": WRITTEN[config.activation],
        "layer_norm_eps": config.norm_eps,
        "tie_word_embeddings": config.tied,
        "rotary_pct": config.rotary,
        "rotary_emb_base": config.rope_base,
        "use_parallel_residual": config.parallel,
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
