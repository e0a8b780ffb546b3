"""Texts with labels, alone or in pairs: reading them, and batches of them for a classifier.

.csv .tsv .jsonl .parquet    columns or fields for the text, the label and the second text, by name or number
.txt                         a line per text, the label before it: `location What is the capital of France ?`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.data.batches.padded import Bucketed, Mask
from chainrule.data.batches.segmented import Segmented, SpecialIds, check_room, segmented, trim
from chainrule.data.batches.windows import Ids
from chainrule.data.order import Items
from chainrule.data.read.documents import Name, find_files, is_table, read_documents
from chainrule.errors import DataError


class Labelled(NamedTuple):
    """A text, or a pair of texts, and what it is."""

    text: str
    label: str
    other: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of it: one."""
        return (self.label,)


def read_labelled(
    name: Name, *, text: str = "text", label: str = "label", other: str | None = None
) -> list[Labelled]:
    """The texts of a file and their labels; `other` is the column of the second text, if there is one.

    `text`, `label` and `other` name columns as in `read_documents`: in a table without a header they are numbers.
    """
    found: list[Labelled] = []
    for path in find_files(name):
        if not is_table(path):
            for line in read_documents(path, by="line"):
                first, _, rest = line.text.strip().partition(" ")
                if not rest:
                    raise DataError(
                        f"{path}: line {line.line} is {first!r} (must be a label, a space and a text)"
                    )
                found.append(Labelled(rest, first))
            continue
        columns = [text, label] if other is None else [text, label, other]
        readers = [read_documents(path, field=column, numbers=column == label) for column in columns]
        found += [Labelled(*(cell.text for cell in row)) for row in zip(*readers, strict=True)]
    return found


def label_ids(labels: Sequence[str]) -> dict[str, int]:
    """Each label's number, in alphabetical order; numbers of several digits in the order of numbers.

    >>> from chainrule.data.batches.labelled import label_ids
    >>> label_ids(["b", "a", "b"]), label_ids(["10", "9"])
    ({'a': 0, 'b': 1}, {'9': 0, '10': 1})
    """
    names = sorted(set(labels), key=lambda name: (len(name) * name.isdecimal(), name))
    return {name: number for number, name in enumerate(names)}


class LabelledBatches(Bucketed):
    """Labelled texts in random order, like `DocumentBatches`; what does not fit loses its end.

    >>> from chainrule.data import LabelledBatches, SpecialIds
    >>> sizes = {"batch_size": 2, "block_size": 8}
    >>> batches = LabelledBatches([[7, 8], [9]], [0, 1], special=SpecialIds(1, 2, 3), **sizes)
    >>> (ids, mask, segments), labels = batches.batch(step=0)
    >>> sorted(zip(ids.tolist(), labels.tolist()))
    [([1, 7, 8, 2], 0), ([1, 9, 2, 0], 1)]
    """

    def __init__(
        self,
        texts: Sequence[npt.ArrayLike],
        labels: Sequence[int],
        others: Sequence[npt.ArrayLike] | None = None,
        *,
        special: SpecialIds,
        batch_size: int,
        block_size: int,
        seed: int = 0,
        pool: int = 1,
    ) -> None:
        room = check_room(block_size, 1 if others is None else 2)
        if not len(texts) == len(labels) == len(texts if others is None else others):
            seconds = "" if others is None else f", {len(others)} second texts"
            raise DataError(f"labelled: {len(texts)} texts, {len(labels)} labels{seconds} (must be as many)")
        pairs = zip(texts, repeat(None) if others is None else others, strict=others is not None)
        whole = [(_row(a), None if b is None else _row(b)) for a, b in pairs]
        self.rows = [trim(a, b, room) for a, b in whole]
        self.labels = np.asarray(labels, np.int32)
        self.special = special
        after, before = (
            np.array([len(a) + (0 if b is None else len(b)) for a, b in rows]) for rows in (self.rows, whole)
        )
        self.truncated = float((after < before).mean())
        """The share of the texts that lose their end."""
        super().__init__(after, batch_size=batch_size, block_size=block_size, seed=seed, pool=pool)

    @property
    def ids(self) -> Ids:
        """All tokens of the texts, one after another (n,)"""
        return np.concatenate([side for row in self.rows for side in row if side is not None])

    @property
    def tokens(self) -> int:
        """How many labels one batch holds."""
        return self.batch_size

    def batch(self, step: int) -> tuple[Segmented, Ids]:
        """Segmented of ids (B, T), mask (B, T), segments (B, T); labels (B,)"""
        return self._batch(self.draw(step))

    def once(self) -> Iterator[tuple[Segmented, Ids]]:
        """Batches for evaluation: every text once."""
        return map(self._batch, self.in_turn())

    def _batch(self, items: Items) -> tuple[Segmented, Ids]:
        firsts, seconds = zip(*(self.rows[item] for item in items), strict=True)
        return segmented(firsts, seconds, self.special), self.labels[items]


def _row(ids: npt.ArrayLike) -> Ids:
    return np.asarray(ids, np.int32)


class Twins(NamedTuple):
    """Texts and their partners, for a model that turns texts into vectors."""

    ids: Ids  # (B, T)
    mask: Mask  # (B, T)
    partner_ids: Ids  # (B, S)
    partner_mask: Mask  # (B, S)


class TwinBatches:
    """Pairs of texts that mean the same, each a row of its own; `targets` (B,) are all 0: every pair counts.

    >>> from chainrule.data import SpecialIds, TwinBatches
    >>> batches = TwinBatches([[7, 8]], [[9]], special=SpecialIds(1, 2, 3), batch_size=1, block_size=8)
    >>> twins, targets = batches.batch(step=0)
    >>> twins.ids.tolist(), twins.partner_ids.tolist()
    ([[1, 7, 8, 2]], [[1, 9, 2]])
    """

    def __init__(
        self,
        texts: Sequence[npt.ArrayLike],
        partners: Sequence[npt.ArrayLike],
        *,
        special: SpecialIds,
        batch_size: int,
        block_size: int,
        seed: int = 0,
    ) -> None:
        self.block_size = block_size
        zeros = [0] * len(texts)
        self.sides = [
            LabelledBatches(
                side, zeros, special=special, batch_size=batch_size, block_size=block_size, seed=seed
            )
            for side in (texts, partners)
        ]

    @property
    def tokens(self) -> int:
        """How many pairs one batch holds."""
        return self.sides[0].batch_size

    def batch(self, step: int) -> tuple[Twins, Ids]:
        """Twins of ids (B, T), mask (B, T), partner_ids (B, S), partner_mask (B, S); targets (B,)"""
        (texts, targets), (partners, _) = (side.batch(step) for side in self.sides)
        return Twins(texts.ids, texts.mask, partners.ids, partners.mask), targets
