"""A batch and its microbatches: rows of ids, of every array of a named tuple, and of the state a model carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from chainrule.autograd.types import Array

State: TypeAlias = tuple[tuple[Array, ...], ...]  # of each recurrent layer: (h,), or (h, c) of an LSTM


class Batch(NamedTuple):
    """What a step learns from. `state` is where a model that carries one continues from, one row per text."""

    inputs: Any
    targets: Array
    state: State | None = None


def rounded(count: int) -> int:
    """`count` or a little more, so that batches have few sizes: multiples of 16, of large ones up to a sixteenth.

    >>> [rounded(n) for n in (0, 5, 100, 614)]
    [0, 16, 112, 640]
    """
    step = max(16, 1 << max(0, count.bit_length() - 5))
    return -(-count // step) * step


def spare(count: int, size: int) -> int:
    """Places to add to `count` of `size` places, so that batches have few sizes.

    >>> spare(100, 128), spare(128, 128), spare(127, 128)
    (12, 0, 1)
    """
    return min(rounded(count), size) - count


def lengthened(x: Array, more: int, value: int = 0, axis: int = 0) -> Array:
    """x with `more` times `value` after its end.

    >>> lengthened(np.array([[1, 2]]), 1, axis=1).tolist()
    [[1, 2, 0]]
    """
    if not more:
        return x
    shape = (*x.shape[:axis], more, *x.shape[axis + 1 :])
    return np.concatenate([x, np.full(shape, value, x.dtype)], axis)


def microbatches(batch: Batch, count: int) -> list[Batch]:
    """The batch in `count` groups of rows, whose gradients are added up."""
    inputs, targets = list(cut(batch.inputs, count)), list(cut(batch.targets, count))
    states = [None] * len(inputs) if batch.state is None else list(cut(batch.state, count))
    return [Batch(*rows) for rows in zip(inputs, targets, states, strict=True)]


def cut(rows: Any, count: int) -> Iterator[Any]:
    """`count` groups of nearly the same number of rows; as many as there are rows if that is fewer.

    >>> import numpy as np
    >>> [rows.tolist() for rows in cut(np.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    for part in _groups(row_count(rows), count):
        yield take(rows, slice(part[0], part[-1] + 1))


def _groups(size: int, count: int) -> list[Array]:
    return np.array_split(np.arange(size), min(count, size))


def rows_of(size: int, count: int, share: tuple[int, int]) -> Array:
    """Which of `size` rows are in every n-th of `count` groups from the i-th on, for a `share` (i, n).

    >>> rows_of(5, 4, (1, 2)).tolist()
    [2, 4]
    """
    first, every = share
    return np.concatenate([np.arange(0), *_groups(size, count)[first::every]])


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


def join(groups: Sequence[Any]) -> Any:
    """What `cut` took apart."""
    first = groups[0]
    if len(groups) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(groups)
    joined = [join(items) for items in zip(*groups, strict=True)]
    return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)


def mapped(tree: Any, function: Callable[[Array], Any]) -> Any:
    """The same nested tuples with `function` of each array."""
    if isinstance(tree, np.ndarray):
        return function(tree)
    if not isinstance(tree, tuple | list):
        return tree
    items = [mapped(item, function) for item in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


def leaves(tree: Any) -> list[Any]:
    """Whatever nested tuples hold, in order."""
    return [leaf for item in tree for leaf in leaves(item)] if isinstance(tree, tuple | list) else [tree]


def arrays_of(tree: Any) -> list[Array]:
    """The arrays that nested tuples hold, in order."""
    return [leaf for leaf in leaves(tree) if isinstance(leaf, np.ndarray)]
