"""A batch in pieces: rows of ids, of every array of a named tuple, or of a carried state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def cut(rows: Any, count: int) -> Iterator[Any]:
    """`count` pieces of nearly the same number of rows; as many as there are rows if that is fewer.

    >>> import numpy as np
    >>> [piece.tolist() for piece in cut(np.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    size = row_count(rows)
    for part in np.array_split(np.arange(size), min(count, size)):
        yield take(rows, slice(part[0], part[-1] + 1))


def row_count(rows: Any) -> int:
    """How many rows there are."""
    return len(rows) if isinstance(rows, np.ndarray) else row_count(rows[0])


def named(inputs: Any) -> dict[str, Any]:
    """The arrays of inputs by name; a single one is ids."""
    return {"ids": inputs} if isinstance(inputs, np.ndarray) else inputs._asdict()


def take(rows: Any, part: slice) -> Any:
    """The same rows of every array."""
    if isinstance(rows, np.ndarray):
        return rows[part]
    taken = [take(item, part) for item in rows]
    return type(rows)(*taken) if hasattr(rows, "_fields") else type(rows)(taken)


def join(pieces: Sequence[Any]) -> Any:
    """What `cut` took apart."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(pieces)
    joined = [join(items) for items in zip(*pieces, strict=True)]
    return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)
