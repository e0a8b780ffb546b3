"""Small models of every family, and what they read."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr
from chainrule.models import tuning

IDS = [1, 5, 2, 7, 3]
PAIR = (IDS, [1, 4, 6])
SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 16, "vocab_size": 11}
CELLS = {"n_layer": 2, "n_embd": 8, "n_hidden": 8, "vocab_size": 11}

TRANSFORMERS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "gpt": ("gpt", SIZES, IDS),
    "llama": ("llama", SIZES | {"n_kv_head": 1, "n_hidden": 24}, IDS),
    "gemma": ("llama", SIZES | {"n_kv_head": 1, "n_hidden": 24, "variant": "gemma"}, IDS),
    "neox": ("neox", SIZES, IDS),
    "seq2seq": ("seq2seq", SIZES, PAIR),
    "marian": ("seq2seq", SIZES | {"norm": "post"}, PAIR),
    "t5": ("t5", SIZES | {"gated": True}, PAIR),
}
FAMILIES = TRANSFORMERS | {
    "bert": ("bert", SIZES | {"n_hidden": 24, "norm": "post"}, IDS),
    "rnn": ("rnn", CELLS, IDS),
    "gru": ("gru", CELLS, IDS),
    "lstm": ("lstm", CELLS, IDS),
    "mlp": ("mlp", {"vocab_size": 11, "block_size": 3}, IDS),
}
CHANGED = ("lora", "adapter", "prefix", "prompt")


def small(name: str, seed: int = 0) -> tuple[Any, Any]:
    """A model whose numbers are not all near 0, and ids for it."""
    cr.seed(seed)
    if name in CHANGED:
        return _changed(name), IDS
    family, sizes, ids = FAMILIES[name]
    return _lively(cr.models.make(family, **sizes)), ids


def _lively(model: Any, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    for _, param in model.named_parameters():
        param.data = param.array + 0.3 * rng.normal(size=param.shape).astype(param.dtype)
    return model


def _changed(name: str) -> Any:
    method = {"lora": tuning.LoRA(rank=2), "adapter": tuning.BottleneckAdapter(bottleneck=4)}.get(name)
    method = method or {"prefix": tuning.Prefix(length=3), "prompt": tuning.Prompt(length=3)}[name]
    return _lively(method.apply(cr.models.make("gpt", **SIZES)))
