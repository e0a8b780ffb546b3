"""Encoded documents: one long row of ids, and where each document begins; in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError
from chainrule.types import Ids

Rows = Iterable[npt.ArrayLike]


class Encoded(Sequence[Ids]):
    """A sequence of documents, each a row of ids. Document i is ids[starts[i] : starts[i + 1]].

    >>> from chainrule.data import Encoded
    >>> documents = Encoded.of([[5, 7], [6]], start=0, end=0)
    >>> documents.ids.tolist(), documents.starts.tolist(), documents[1].tolist()
    ([0, 5, 7, 0, 0, 6, 0], [0, 4, 7], [0, 6, 0])
    """

    def __init__(self, ids: Ids, starts: Ids) -> None:
        if not len(starts) or starts[0] != 0 or starts[-1] != len(ids):
            raise DataError(f"documents: boundaries must run from 0 to {len(ids)}, the number of tokens")
        self.ids = ids  # (tokens,)
        self.starts = starts  # (documents + 1,)

    @classmethod
    def of(cls, rows: Rows, *, start: int | None = None, end: int | None = None) -> Encoded:
        """From rows of ids, each between the tokens `start` and `end`, if given."""
        before, after = (np.array([] if t is None else [t], np.int32) for t in (start, end))
        whole = [np.concatenate([before, np.asarray(row, np.int32), after]) for row in rows]
        lengths = [len(row) for row in whole]
        ids = np.concatenate(whole) if whole else np.empty(0, np.int32)
        return cls(ids, np.cumsum([0, *lengths]))

    @classmethod
    def joined(cls, parts: Sequence[Encoded]) -> Encoded:
        """Several as one, copied into memory; a single one as it is."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.ids) for part in parts)])
        starts = [part.starts[:-1] + first for part, first in zip(parts, before[:-1], strict=True)]
        return cls(np.concatenate([part.ids for part in parts]), np.concatenate([*starts, before[-1:]]))

    @property
    def lengths(self) -> Ids:
        """Number of tokens of each document (documents,)."""
        return np.diff(self.starts)

    def lengths_of(self, items: Ids) -> Ids:
        """Number of tokens of some documents (items,); reads no others."""
        return np.asarray(self.starts[items + 1] - self.starts[items])

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> Ids: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ids]: ...

    def __getitem__(self, index: int | slice) -> Ids | list[Ids]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        index %= len(self)
        return self.ids[self.starts[index] : self.starts[index + 1]]

    def __repr__(self) -> str:
        return f"<Encoded, {len(self):,} documents, {len(self.ids):,} tokens>"
