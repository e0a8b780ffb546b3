"""Who attends to whom: a map of attention weights in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError

ALIKE = 1e-6  # weights that differ by less are equal


class Link(NamedTuple):
    """A query, a key it looks at, and the weight."""

    query: int
    key: int
    weight: float


def focus(A: npt.ArrayLike) -> list[tuple[int, ...]]:
    """For each query of the map A (T, S) the keys that get the largest weight; several if they are alike.

    >>> focus([[0.1, 0.8, 0.1], [0.3, 0.4, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    [(1,), (1,), (0, 1, 2)]
    """
    A = _map(A)
    near = A.max(axis=1, keepdims=True) - A <= ALIKE
    return [tuple(np.flatnonzero(row).tolist()) for row in near]


def strongest(A: npt.ArrayLike, n: int = 5) -> list[Link]:
    """The n strongest links of the map A (T, S), the strongest first.

    >>> strongest([[0.1, 0.9], [0.7, 0.3]], n=2)
    [Link(query=0, key=1, weight=0.9), Link(query=1, key=0, weight=0.7)]
    """
    A = _map(A)
    if n < 0:
        raise ConfigError(f"strongest: n is {n} (must be at least 0)")
    order = np.argsort(-A, axis=None, kind="stable")[:n]
    places = zip(*np.unravel_index(order, A.shape), strict=True)
    return [Link(int(i), int(j), float(A[i, j])) for i, j in places]


def attends(A: npt.ArrayLike, queries: Sequence[str], keys: Sequence[str] | None = None) -> list[str]:
    """The map A (T, S) in a line per query; `keys` are the words of another sequence in cross-attention.

    >>> attends([[0.1, 0.9], [0.5, 0.5]], ["not", "good"])
    ['not → good (0.90)', 'good → all alike']
    """
    A = _map(A)
    keys = queries if keys is None else keys
    if A.shape != (len(queries), len(keys)):
        raise ShapeError(
            f"attends: map {A.shape}, {len(queries)} queries and {len(keys)} keys (must be equal)"
        )
    lines = []
    for query, row, found in zip(queries, A, focus(A), strict=True):
        if len(found) == len(keys) > 1:
            lines.append(f"{query} → all alike")
        else:
            lines.append(f"{query} → {', '.join(keys[j] for j in found)} ({row[found[0]]:.2f})")
    return lines


def _map(A: npt.ArrayLike) -> Array:
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or not A.size:
        raise ShapeError(f"links: map {A.shape} (must be queries × keys, of one head)")
    return A
