"""What the architectures share in turning the names and shapes of weights into ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.io.safetensors import Arrays

Matrix = npt.NDArray[Any]


def drop_prefix(arrays: Arrays, *prefixes: str) -> Arrays:
    """Names without the first of the prefixes that they have; two must not become one."""
    found: Arrays = {}
    for name, array in arrays.items():
        prefix = next((p for p in prefixes if name.startswith(p)), "")
        short = name[len(prefix) :]
        if short in found:
            raise FormatError(f"weights {prefix}{short} and {short} are both there (must be one)")
        found[short] = array
    return found


def without_head(arrays: Arrays, embedding: str, head: str = "lm_head.weight") -> Arrays:
    """A tied head is the embedding's matrix: a copy in the file must agree with it."""
    found = dict(arrays)
    copy = found.pop(head, None)
    if copy is not None and not (embedding in found and np.array_equal(copy, found[embedding])):
        raise FormatError(f"{head} is not {embedding}, but tie_word_embeddings is true (must agree)")
    return found


def pairs_to_halves(weight: Matrix, heads: int) -> Matrix:
    """The rows of queries or keys (H D, C) for rotary positions that pair i with i + D/2, from those that pair
    2i with 2i + 1: llama2.c and GGUF keep the latter."""
    return _swap(weight, heads, 2)


def halves_to_pairs(weight: Matrix, heads: int) -> Matrix:
    """The inverse of `pairs_to_halves`."""
    return _swap(weight, heads, len(weight) // heads // 2)


def _swap(weight: Matrix, heads: int, inner: int) -> Matrix:
    rows = weight.reshape(heads, len(weight) // heads // inner, inner, -1)
    return rows.swapaxes(1, 2).reshape(weight.shape)
