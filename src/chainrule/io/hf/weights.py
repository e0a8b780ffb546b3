"""Shared by the architectures: names, copies, biases, fused matrices and rotary order of weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from chainrule.errors import FormatError
from chainrule.io.lazy import Arrays, Matrix, later


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


def rename(name: str, names: Mapping[str, str]) -> str | None:
    """The other name of a weight: `names` has them without weight or bias at the end, and with # for the layer."""
    number = re.search(r"\.(\d+)\.", name)
    stem, _, last = re.sub(r"\.\d+\.", ".#.", name, count=1).rpartition(".")
    if stem not in names or last not in ("weight", "bias"):
        return None
    return f"{names[stem].replace('#', number[1]) if number else names[stem]}.{last}"


def renamed(arrays: Arrays, names: Mapping[str, str]) -> Arrays:
    """Arrays by their other names; what has none keeps its own."""
    return {rename(name, names) or name: array for name, array in arrays.items()}


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


def split_rows(arrays: Arrays, fused: str, parts: Mapping[str, int]) -> Arrays:
    """Every layer `fused` as the layers `parts`, each with so many of its rows."""
    found: Arrays = {}
    for name, array in arrays.items():
        stem, _, last = name.rpartition(".")
        if not stem.endswith(fused):
            found[name] = array
            continue
        check_rows(name, array, sum(parts.values()))
        start = 0
        for part, rows in parts.items():
            found[f"{stem.removesuffix(fused)}{part}.{last}"] = array[start : start + rows]
            start += rows
    return found


def fuse_rows(arrays: Arrays, fused: str, parts: Sequence[str]) -> Arrays:
    """The inverse of `split_rows`."""
    found: Arrays = {}
    for name, array in arrays.items():
        stem, _, last = name.rpartition(".")
        part = next((part for part in parts if stem.endswith(part)), None)
        if part is None:
            found[name] = array
        elif part == parts[0]:
            before = stem.removesuffix(part)
            names = [f"{before}{each}.{last}" for each in parts]
            if missing := [each for each in names if each not in arrays]:
                raise FormatError(f"{missing[0]} is missing, but {name} is there (must be both)")
            found[f"{before}{fused}.{last}"] = joined(*(arrays[each] for each in names))
    return found


def joined(*arrays: Matrix) -> Matrix:
    """Rows one above the other, when they are read."""
    (width, *others) = {array.shape[1:] for array in arrays}
    if others or not all(array.ndim for array in arrays):
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise FormatError(f"weights of shapes {shapes} (must be of one width: they are read as one matrix)")
    return later(lambda *parts: np.concatenate(parts), *arrays, shape=(sum(map(len, arrays)), *width))


def check_rows(name: str, array: Matrix, rows: int) -> None:
    """Refuse a fused matrix that is not as long as its parts."""
    if array.ndim == 0 or len(array) != rows:
        raise FormatError(f"{name} has shape {array.shape} (must have {rows} rows)")


def without_rows(name: str, array: Matrix, n: int) -> Matrix:
    """The array without its first `n` rows, which are never read."""
    if array.ndim == 0 or len(array) <= n:
        raise FormatError(f"{name} has shape {array.shape} (must have more than {n} rows)")
    return array[n:]


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
