"""Texts with labels, alone or in pairs.

.csv .tsv .jsonl .parquet    columns or fields for the text, the label and the second text, by name or number
.txt                         a line per text, the label first: `location What is the capital of France ?`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.documents import Name, find_files, read_documents
from chainrule.data.read.tabular.columns import LABELED, no_table
from chainrule.data.read.tabular.reading import COPIES, Reading, joined, read_rows
from chainrule.data.read.tabular.table import is_table
from chainrule.errors import DataError


class Labeled(NamedTuple):
    """A text or a pair of texts, and its label."""

    text: str
    label: str
    other: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Its label in a tuple, as a sentence with tags has several."""
        return (self.label,)


def read_labeled(
    name: Name, *, text: str | None = None, label: str | None = None, other: str | None = None
) -> list[Labeled]:
    """The texts of a file and their labels; `other` is the column of the second text of a pair.

    `text`, `label` and `other` are names or numbers of columns; what is not said is chosen as in `Columns`.
    """
    columns = Columns((text,) if text else (), label, other_column=other)
    return labeled_rows(name, columns, copies=True)[0]


def labeled_rows(
    name: Name, columns: Columns = CHOSEN, *, copies: bool = False
) -> tuple[list[Labeled], Reading | None]:
    """The texts of a file and their labels, each once unless `copies` are asked for; and how a table was read."""
    found, reading = _rows(name, columns, copies)
    return (found if copies else list(dict.fromkeys(found))), reading


def distinct_rows(name: Name, columns: Columns = CHOSEN) -> tuple[list[Labeled], Reading | None, int]:
    """What `labeled_rows` gives, and how many copies were left out."""
    found, reading = _rows(name, columns, copies=False)
    rows = list(dict.fromkeys(found))
    in_tables = reading.dropped.get(COPIES, 0) if reading else 0
    return rows, reading, in_tables + len(found) - len(rows)


def _rows(name: Name, columns: Columns, copies: bool) -> tuple[list[Labeled], Reading | None]:
    """The rows of all files; a table leaves out its own copies, unless they are asked for."""
    found: list[Labeled] = []
    readings: list[Reading] = []
    for path in find_files(name):
        if is_table(path):
            roles = LABELED if columns.other_column is None else (*LABELED, "other")
            rows, reading = read_rows(path, roles, columns, copies=copies)
            found += [Labeled(*row) for row in rows]
            readings.append(reading)
        else:
            found += _lines(path)
    if not readings:
        no_table(name, columns)
    return found, joined(readings)


def _lines(path: Path) -> Iterator[Labeled]:
    for line in read_documents(path, by="line"):
        first, _, rest = line.text.strip().partition(" ")
        if not rest:
            raise DataError(f"{path}: line {line.line} is {first!r} (must be a label, a space and a text)")
        yield Labeled(rest, first)


def label_ids(labels: Sequence[str]) -> dict[str, int]:
    """Label -> id, in alphabetical order; numbers in numerical order.

    >>> from chainrule.data import label_ids
    >>> label_ids(["b", "a", "b"]), label_ids(["10", "9"])
    ({'a': 0, 'b': 1}, {'9': 0, '10': 1})
    """
    names = sorted(set(labels), key=lambda name: (len(name) * name.isdecimal(), name))
    return {name: number for number, name in enumerate(names)}
