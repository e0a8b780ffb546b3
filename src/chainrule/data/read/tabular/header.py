"""Whether the first row of a table names its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chainrule.data.read.tabular.columns import FIRST, LANGUAGES, PAIRS, USUAL, plain

FEW = 2  # a label has at least so many rows
NAME = re.compile(r"(?=.*[^\W\d]|#)[^\n!?]{1,40}")  # of a column: a few words, no question
HEADINGS = {
    *(name for names in (*FIRST.values(), *PAIRS, *USUAL.values()) for name in names),
    "id", "index", "title", "description", "name", "date", "url", "author", "language", "split", "score", "rating",
    "translation", "trg", "word", "pronunciation", "spelling", "phonemes",
}  # fmt: skip


def names_columns(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether a first row names the columns, by how it looks beside the others.

    Programs leave some names out: pandas that of the first column, others one after a separator at the end of each
    row, below which nothing stands.

    >>> from chainrule.data.read.tabular.header import names_columns
    >>> names_columns(["id", "headline"], []), names_columns(["one", "eins"], [["two", "zwei"]])
    (True, False)
    """
    named = [cell for cell in map(plain, first) if cell]
    if not named or len(set(named)) < len(named) or not all(NAME.fullmatch(cell) for cell in named):
        return False
    known = sum(cell in HEADINGS for cell in named)
    spoken = sum(cell in LANGUAGES for cell in named)
    if known + spoken == len(named) or (len(first) > 2 and (known or spoken > 1)):
        return True
    columns = [[plain(row[place]) for row in rest] for place in range(len(first))]
    there = [(n, plain(first[n]), column) for n, column in enumerate(columns) if any((first[n], *column))]
    if len(rest) < 4 or any(cell in column if cell else n for n, cell, column in there):
        return False
    return any(
        FEW * len(set(column)) <= len(column) or all(map(_is_number, column)) for _, _, column in there
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
