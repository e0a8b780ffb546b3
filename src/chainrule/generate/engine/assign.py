"""Which cache each text has, while texts end, fork and change places."""

from __future__ import annotations

from collections.abc import Sequence


def assign(caches: Sequence[int], rows: Sequence[int], total: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Texts in `caches` continue as `rows` says -> the cache of each, and what to copy: (from, to), of `total` caches

    A text stays in its cache, and only the second of two copies needs another: order costs nothing.

    >>> from chainrule.generate.engine.assign import assign
    >>> assign([0, 1, 2], [2, 0, 2], total=3)               # what was in cache 1 is not needed any more
    ([2, 0, 1], [(2, 1)])
    """
    wanted = [caches[row] for row in rows]
    taken = set(wanted)
    free = [cache for cache in range(total) if cache not in taken]
    copies: list[tuple[int, int]] = []
    for i, cache in enumerate(wanted):
        if cache in taken:
            taken.remove(cache)  # the first one stays
        else:
            wanted[i] = free.pop()
            copies.append((cache, wanted[i]))
    return wanted, copies
