"""Texts with labels, alone or in pairs.

.csv .tsv .jsonl .parquet    columns or fields for the text, the label and the second text, by name or number
.txt                         a line per text, the label first: `location What is the capital of France ?`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chainrule.data.read.documents import Name, find_files, is_table, read_documents
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
    name: Name, *, text: str = "text", label: str = "label", other: str | None = None
) -> list[Labeled]:
    """The texts of a file and their labels; `other` is the column of the second text of a pair.

    `text`, `label` and `other` name columns as in `read_documents`: in a table without a header they are numbers.
    """
    found: list[Labeled] = []
    for path in find_files(name):
        if not is_table(path):
            for line in read_documents(path, by="line"):
                first, _, rest = line.text.strip().partition(" ")
                if not rest:
                    raise DataError(
                        f"{path}: line {line.line} is {first!r} (must be a label, a space and a text)"
                    )
                found.append(Labeled(rest, first))
            continue
        columns = [text, label] if other is None else [text, label, other]
        readers = [read_documents(path, field=column, numbers=column == label) for column in columns]
        found += [Labeled(*(cell.text for cell in row)) for row in zip(*readers, strict=True)]
    return found


def label_ids(labels: Sequence[str]) -> dict[str, int]:
    """Label -> id, in alphabetical order; numbers in numerical order.

    >>> from chainrule.data import label_ids
    >>> label_ids(["b", "a", "b"]), label_ids(["10", "9"])
    ({'a': 0, 'b': 1}, {'9': 0, '10': 1})
    """
    names = sorted(set(labels), key=lambda name: (len(name) * name.isdecimal(), name))
    return {name: number for number, name in enumerate(names)}
