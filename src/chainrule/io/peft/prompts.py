"""Prefixes, one array (m, layers · 2 · heads · D) of keys and values, and prompts, one array (m, C).

There a prefix takes the first m positions. So it does in our GPT; in a Llama, where only distances count, it takes
none, and its keys are turned on by m positions. Others have no such file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.types import Array
from chainrule.errors import FormatError
from chainrule.models import Llama, Model
from chainrule.models.tuning import Prefix, Prompt
from chainrule.nn import KeyValuePrefix

PROMPT = "prompt_embeddings"


def prompt_config(model: Model, method: Prompt | Prefix) -> dict[str, Any]:
    return {
        "num_virtual_tokens": method.length,
        "token_dim": model.config.n_embd,
        "num_transformer_submodules": 1,
        "num_attention_heads": model.config.n_head,
        "num_layers": model.config.n_layer,
    }


def prefix_config(model: Model, method: Prefix) -> dict[str, Any]:
    heads, _, size = prefixes(model)[0][1].keys.shape
    own = {"peft_type": method.peft_type, "token_dim": heads * size, "num_attention_heads": heads}
    return (
        prompt_config(model, method) | own | {"encoder_hidden_size": size * heads, "prefix_projection": False}
    )


def prefixes_of(model: Model, length: int) -> Array:
    """Keys and values of all layers (m, L · 2 · H · D), keys turned on by m positions"""
    parts = enumerate(prefixes(model))
    both = [(_turned(model, i, each.keys.array, length), each.values.array) for i, (_, each) in parts]
    return np.array(both).transpose(3, 0, 1, 2, 4).reshape(length, -1)  # from (L, 2, H, m, D)


def own_prefixes(model: Model, prompt: Array) -> dict[str, Array]:
    """The inverse of `prefixes_of`, by our names."""
    paths = [path for path, _ in prefixes(model)]
    heads, length, size = prefixes(model)[0][1].keys.shape
    shape = (length, len(paths) * 2 * heads * size)
    if prompt.shape != shape:
        raise FormatError(f"{PROMPT} has shape {prompt.shape} (must be {shape})")
    both = prompt.reshape(length, len(paths), 2, heads, size).transpose(1, 2, 3, 0, 4)
    found: dict[str, Array] = {}
    for i, (path, (keys, values)) in enumerate(zip(paths, both, strict=True)):
        found |= {f"{path}.keys": _turned(model, i, keys, -length), f"{path}.values": values}
    return found


def prefixes(model: Model) -> list[tuple[str, KeyValuePrefix]]:
    """Those of all layers, with their paths."""
    return [(path, layer) for path, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)]


def _turned(model: Model, layer: int, keys: Array, positions: int) -> Array:
    """keys (H, m, D) turned by so many positions, all alike; a layer without rotations keeps them"""
    frequencies = model.layers[layer].self_attn.frequencies if isinstance(model, Llama) else None
    if frequencies is None:
        return keys
    places = np.full(keys.shape[1], positions)
    return np.asarray(ops.rotary(keys[None], positions=places, frequency=frequencies))[0]
