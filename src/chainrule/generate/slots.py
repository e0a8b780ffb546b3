"""Which cache each text has, while texts end, fork and change places."""

from __future__ import annotations

from collections.abc import Sequence


def kept(slots: Sequence[int], rows: Sequence[int], room: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Texts in caches `slots` go on as `rows` says -> the cache of each, and what to copy: (from, to) of `room` caches

    A text stays in its cache, and only the second of two copies needs another: order costs nothing.

    >>> from chainrule.generate.slots import kept
    >>> kept([0, 1, 2], [2, 0, 2], room=3)                  # what was in cache 1 is not needed any more
    ([2, 0, 1], [(2, 1)])
    """
    wanted = [slots[row] for row in rows]
    taken = set(wanted)
    free = [slot for slot in range(room) if slot not in taken]
    copies: list[tuple[int, int]] = []
    for i, slot in enumerate(wanted):
        if slot in taken:
            taken.remove(slot)  # the first one stays
        else:
            wanted[i] = free.pop()
            copies.append((slot, wanted[i]))
    return wanted, copies
