"""Weights by the names of llama.cpp and by ours, and what tensors say of sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.weights import rename
from chainrule.io.lazy import Arrays


def from_gguf(tensors: Mapping[str, Any], names: Mapping[str, str]) -> Arrays:
    """Arrays by our names; `names` has llama.cpp's by ours."""
    theirs = {their: our for our, their in names.items()}
    found: Arrays = {}
    for name, array in tensors.items():
        ours = rename(name, theirs)
        if ours is None:
            raise FormatError(f"tensor {name!r} (has no place in this model)")
        found[ours] = array
    return found


def to_gguf(state: Arrays, names: Mapping[str, str]) -> Arrays:
    """Arrays by llama.cpp's names."""
    return {str(rename(name, names)): array for name, array in state.items()}


def vocab_size(tensors: Mapping[str, Any]) -> int:
    """The number of rows of the embedding."""
    if "token_embd.weight" not in tensors:
        raise FormatError("token_embd.weight is missing (must hold the embedding)")
    return int(tensors["token_embd.weight"].shape[0])
