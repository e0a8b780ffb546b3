"""Shared by the architectures: names, copies, biases and rotary order of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.io.safetensors import Arrays

Matrix = npt.NDArray[Any]


def drop_prefix(arrays: Arrays, *prefixes: str) -> Arrays:
    """Names without their prefix; two names must not become one."""
    found: Arrays = {}
    for name, array in arrays.items():
        prefix = next((p for p in prefixes if name.startswith(p)), "")
        short = name[len(prefix) :]
        if short in found:
            raise FormatError(
                f"weights {prefix}{short} and {short} are both in the file (must be one of them)"
            )
        found[short] = array
    return found


def without_copies(arrays: Arrays, originals: Mapping[str, str]) -> Arrays:
    """Drop copies of tied weights, given as copy -> original; a copy must equal its original."""
    found = dict(arrays)
    for copy, original in originals.items():
        twin = found.pop(copy, None)
        if twin is not None and not (original in found and np.array_equal(twin, found[original])):
            raise FormatError(f"{copy} is not {original}, but config.json says they are tied (must be equal)")
    return found


def with_zero_biases(arrays: Arrays, *weights: str) -> Arrays:
    """Add biases of 0 for all weights with these endings, for programs whose layers always have biases."""
    biases = {f"{n[:-6]}bias": np.zeros(len(a), np.float32) for n, a in arrays.items() if n.endswith(weights)}
    return dict(arrays) | biases


def without_zero_biases(arrays: Arrays, *biases: str) -> Arrays:
    """Drop the biases that `with_zero_biases` added; they must be 0."""
    added = {name for name in arrays if name.endswith(biases)}
    for name in added:
        if np.any(arrays[name]):
            raise FormatError(f"{name} is not 0, but config.json says chainrule.bias is false (make it true)")
    return {name: array for name, array in arrays.items() if name not in added}


def pairs_to_halves(weight: Matrix, heads: int) -> Matrix:
    """Reorder the rows of queries or keys (H D, C) from rotary pairs (2i, 2i + 1), as in llama2.c and GGUF, to pairs
    (i, i + D/2)."""
    return _swap(weight, heads, 2)


def halves_to_pairs(weight: Matrix, heads: int) -> Matrix:
    """The inverse of `pairs_to_halves`."""
    return _swap(weight, heads, len(weight) // heads // 2)


def _swap(weight: Matrix, heads: int, inner: int) -> Matrix:
    rows = weight.reshape(heads, len(weight) // heads // inner, inner, -1)
    return rows.swapaxes(1, 2).reshape(weight.shape)
