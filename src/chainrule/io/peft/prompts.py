"""Prefixes, one array (m, layers · 2 · heads · D) of keys and values, and prompts, one array (m, C).

There a prefix takes the first m positions, here it takes none: so the keys of a Llama are turned on by m positions, and
others have no such file.
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


def prefix_config(model: Llama, method: Prefix) -> dict[str, Any]:
    heads, size = model.config.n_kv_head, model.config.head_size
    own = {"peft_type": method.peft_type, "token_dim": heads * size, "num_attention_heads": heads}
    return (
        prompt_config(model, method) | own | {"encoder_hidden_size": size * heads, "prefix_projection": False}
    )


def prefixes_of(model: Model, length: int) -> Array:
    """Keys and values of all layers (m, L · 2 · H · D), keys turned on by m positions"""
    parts = [layer for _, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)]
    both = [(_turned(model, i, each.keys.array, length), each.values.array) for i, each in enumerate(parts)]
    return np.array(both).transpose(3, 0, 1, 2, 4).reshape(length, -1)  # from (L, 2, H, m, D)


def own_prefixes(model: Model, prompt: Array) -> dict[str, Array]:
    """The inverse of `_prefixes_of`, by our names."""
    paths = [path for path, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)]
    heads, length, size = next(
        layer.keys.shape for _, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)
    )
    shape = (length, len(paths) * 2 * heads * size)
    if prompt.shape != shape:
        raise FormatError(f"{PROMPT} has shape {prompt.shape} (must be {shape})")
    both = prompt.reshape(length, len(paths), 2, heads, size).transpose(1, 2, 3, 0, 4)
    found: dict[str, Array] = {}
    for i, (path, (keys, values)) in enumerate(zip(paths, both, strict=True)):
        found |= {f"{path}.keys": _turned(model, i, keys, -length), f"{path}.values": values}
    return found


def _turned(model: Model, layer: int, keys: Array, positions: int) -> Array:
    """keys (H, m, D) turned by so many positions, all alike; a layer without rotations keeps them"""
    frequencies = model.layers[layer].self_attn.frequencies  # type: ignore[attr-defined]
    if frequencies is None:
        return keys
    places = np.full(keys.shape[1], positions)
    return np.asarray(ops.rotary(keys[None], positions=places, frequency=frequencies))[0]
