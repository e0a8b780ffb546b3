"""What separates the cells of a table, and how they are quoted."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from chainrule.data.read.files import LONGEST_LINE, lines

SEPARATORS = ",;\t|"  # in files called .csv; where commas and others fit alike, it is the comma
LOOKED_AT = 200  # lines
TSV: dict[str, Any] = {
    "delimiter": "\t",
    "quoting": csv.QUOTE_NONE,
}  # a quotation mark is a character like others


def dialect(path: Path, suffix: str) -> dict[str, Any]:
    """The options of `csv.reader` for a .tsv, or for a .csv as its first lines are: Excel may write semicolons."""
    csv.field_size_limit(LONGEST_LINE)  # a global setting of csv, 128 kB by default
    if suffix == ".tsv":
        return TSV
    first = [line for _, line in islice(lines(path), LOOKED_AT)]
    return {"delimiter": separator(first), "quoting": csv.QUOTE_MINIMAL}


def separator(first: Sequence[str]) -> str:
    """The separator that gives all records of these lines the same number of cells, more than one

    >>> from chainrule.data.read.tabular.dialect import separator
    >>> separator(["id;text", "1;red, green"]), separator(["id,text", "1,a;b"])
    (';', ',')
    """
    widths = {each: _widths(first, each) for each in SEPARATORS}
    fitting = [each for each, found in widths.items() if len(found) == 1 and max(found) > 1]
    if "," in fitting or not fitting:
        return ","
    return max(fitting, key=lambda each: max(widths[each]))


def _widths(first: Sequence[str], delimiter: str) -> set[int]:
    """How many cells the records have."""
    found = csv.reader((line + "\n" for line in first), delimiter=delimiter)
    try:
        records = [len(record) for record in found if record]
    except csv.Error:  # said when the file is read
        return set()
    whole = records[:-1] if len(first) == LOOKED_AT else records  # the last may go on in the next line
    return set(whole)
