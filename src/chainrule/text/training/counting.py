"""Counting words with several workers: each counts a part of the texts, the sums are those of one.

A long text is cut where a letter is followed by a space or a line end: no rule of splitting joins these, which is how
the threads of one process share a text too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from chainrule.text.unicode.utf8 import Joined, joined

PART = 1 << 20  # bytes for a worker at once
_CUT = re.compile(rb"(?<=[A-Za-z])(?=[ \n])")


def count_words(trainer: Any, make: Callable[[], Any], texts: Iterable[bytes], workers: int) -> bool:
    """Add the words of texts, counted by workers of which each makes a trainer of its own; False if none is to help."""
    from chainrule.distributed import alone, in_order  # here: reading a tokenizer needs no workers

    if alone(workers):
        return False
    for counted in in_order(partial(_counted, make), parts(texts), workers):
        trainer.add_counts(*counted)
    return True


def _counted(make: Callable[[], Any], part: Joined) -> Any:
    """The words of a part and their counts, maybe in a process of a pool."""
    trainer = make()
    trainer.add(*part)
    return trainer.counts()


def parts(texts: Iterable[bytes]) -> Iterator[Joined]:
    """Texts of about PART bytes: long ones are cut, short ones joined.

    >>> from chainrule.text.training.counting import parts
    >>> [ends.tolist() for _, ends in parts([b"short", b"word " * 300_000])]
    [[5, 1048584], [451421]]
    """
    batch: list[bytes] = []
    size = 0
    for text in texts:
        start = 0
        while start < len(text):
            found = _CUT.search(text, start + PART) if len(text) - start > PART else None
            stop = found.start() if found else len(text)
            batch.append(text[start:stop])
            size += stop - start
            start = stop
            if size >= PART:
                yield joined(batch)
                batch, size = [], 0
    if batch:
        yield joined(batch)
