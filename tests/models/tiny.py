"""Small models for tests: of every family, in float64, and text for them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

import chainrule as cr
from chainrule.autograd.types import Array
from chainrule.models import LanguageModel, make

M = TypeVar("M", bound=LanguageModel)

SIZES: dict[str, dict[str, Any]] = {
    "gpt": {"n_layer": 2, "n_head": 3, "n_embd": 12, "block_size": 7},
    "llama": {"n_layer": 2, "n_head": 6, "n_kv_head": 2, "n_embd": 24, "n_hidden": 20, "block_size": 7},
    "neox": {"n_layer": 2, "n_head": 3, "n_embd": 24, "rotary": 0.5, "block_size": 7},
    "ngram": {"block_size": 3},
    "mlp": {"block_size": 3, "n_embd": 4, "n_hidden": 9, "n_layer": 2},
    "rnn": {"n_layer": 2, "n_embd": 5, "n_hidden": 6, "block_size": 7},
    "gru": {"n_layer": 2, "n_embd": 5, "n_hidden": 6, "block_size": 7},
    "lstm": {"n_layer": 2, "n_embd": 5, "n_hidden": 6, "block_size": 7},
}


def tiny(name: str, seed: int = 0, vocab_size: int = 11) -> LanguageModel:
    """A new model of a family."""
    cr.seed(seed)
    return make(name, **SIZES[name], vocab_size=vocab_size)


def float64(model: M) -> M:
    """The model in float64, its parameters moved away from their symmetric start."""
    model = model.to(np.float64)
    rng = np.random.default_rng(2)
    model.load({name: value + 0.1 * rng.normal(size=value.shape) for name, value in model.state().items()})
    return model


def ids_of(config: Any, B: int = 2, T: int | None = None) -> Array:
    """ids (B, T) of random tokens"""
    return np.random.default_rng(1).integers(config.vocab_size, size=(B, T or config.block_size))
