"""A table: a .csv, .tsv, .jsonl or .parquet, its columns, and its first rows, by which columns are told apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.tabular.columns import ROLES, Places, parted, place_of, plain
from chainrule.data.read.tabular.header import FEW, names_columns
from chainrule.data.read.tabular.records import kind, objects, parquet, parquet_names, rows
from chainrule.errors import DataError, kind_of

KINDS = (".jsonl", ".csv", ".tsv", ".parquet")
SAMPLE = 1000  # rows that are looked at
Cells = Sequence[Any]
T = TypeVar("T")


def is_table(path: Path) -> bool:
    """Whether the file holds records with fields rather than plain text."""
    return kind(path) in KINDS


@dataclass(frozen=True)
class Table:
    """A table on disk."""

    path: Path
    names: tuple[str, ...]
    """Of the columns; their numbers if nothing names them."""
    header: bool | None
    """Whether the first row names the columns; None if the format does."""
    sample: list[Cells] = field(repr=False)
    """The first rows."""

    @classmethod
    def open(cls, path: Path, columns: Columns = CHOSEN) -> Table:
        """The table in a file."""
        if kind(path) == ".parquet":
            names = tuple(parquet_names(path))
            records = _first(parquet(path))
        elif kind(path) == ".jsonl":
            records = _first(objects(path))
            names = tuple(dict.fromkeys(name for record in records for name in record))
        else:
            return cls._of_rows(path, columns)
        return cls(path, names, None, [tuple(map(record.get, names)) for record in records])

    @classmethod
    def _of_rows(cls, path: Path, columns: Columns) -> Table:
        first, *rest = _first(rows(path)) or [[]]
        header = columns.header
        if header is None:
            said = [word for role in ROLES for word in columns.asked(role)]
            words = {plain(part) for word in said for part in parted(word, first)}
            asked = any(plain(cell) in words and not cell.strip().isdecimal() for cell in first)
            header = asked or names_columns(first, rest)
        if header:
            return cls(path, tuple(first), True, list(rest))
        return cls(path, tuple(str(n + 1) for n in range(len(first))), False, [first, *rest])

    def rows(self, places: Sequence[int]) -> Iterator[tuple[int, Cells]]:
        """The rows with their lines or numbers; where a field is missing, or not at `places`, they may have None."""
        if self.header is not None:
            yield from islice(rows(self.path), int(self.header), None)
            return
        names = [self.names[place] for place in dict.fromkeys(places)]
        found = parquet(self.path, names) if kind(self.path) == ".parquet" else objects(self.path)
        for number, record in found:
            yield number, tuple(map(record.get, self.names))

    def place_in_words(self, place: int) -> str:
        """'title', or column 2"""
        return f"column {place + 1}" if self.header is False else repr(self.names[place])

    def spoken(self, place: int) -> str:
        """How a command line or a run names a column, so that it is found again."""
        name = self.names[place]
        return next((said for said in (name.strip(), str(place + 1)) if self._finds(said, place)), name)

    def _finds(self, said: str, place: int) -> bool:
        """Whether this finds the column. Its name may be that of others too, and its number the name of another."""
        try:
            return place_of(self, said) == place
        except DataError:
            return False

    def column(self, place: int) -> list[str]:
        """The cells of the first rows, without empty ones."""
        cells = (cell_text(row[place]) for row in self.sample)
        return [cell for cell in cells if cell]

    def blank(self, place: int) -> bool:
        """The column has neither a name nor a cell, as after a separator at the end of each row."""
        return not self.column(place) and (self.header is False or not plain(self.names[place]))

    def distinct(self, place: int) -> int:
        """How many different values there are in the first rows."""
        return len(set(self.column(place)))

    def counts_rows(self, place: int) -> bool:
        """The column numbers the rows: 1, 2, 3."""
        cells = self.column(place)
        if len(cells) < 3 or not all(re.fullmatch(r"\d{1,18}", cell) for cell in cells):
            return False
        numbers = list(map(int, cells))
        return numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    def suggest(self, roles: Sequence[str], found: Places) -> dict[str, str]:
        """Columns that look as if they had these roles: a label has few values, texts are long."""
        taken = {place for places in found.values() for place in places}
        free = [
            p
            for p in range(len(self.names))
            if p not in taken and self.distinct(p) > 1 and not self.counts_rows(p)
        ]
        chosen: dict[str, int] = {}
        labels = [place for place in free if FEW * self.distinct(place) <= len(self.column(place))]
        if "label" in roles and labels:
            chosen["label"] = min(labels, key=self.distinct)
        longest = sorted((p for p in free if p not in chosen.values()), key=self._length, reverse=True)
        texts = [role for role in roles if role != "label"]
        for role, place in zip(texts, sorted(longest[: len(texts)]), strict=False):
            chosen[role] = place
        return {role: self.spoken(place) for role, place in chosen.items()}

    def _length(self, place: int) -> float:
        cells = self.column(place)
        return sum(map(len, cells)) / max(1, len(cells))


def _first(found: Iterable[tuple[int, T]]) -> list[T]:
    """The first rows; what is wrong with a later one is said when it is read."""
    rows: list[T] = []
    try:
        for _, row in islice(found, SAMPLE + 1):
            rows.append(row)
    except DataError:
        if not rows:
            raise
    return rows


def cell_text(value: Any) -> str:
    """A cell as a text without white space around it; what is not there is empty."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else str(value)


def as_text(value: Any, where: str, name: str, *, number: bool = False) -> str:
    """A cell of a text; of a label, which may be a `number`. What is neither is a DataError."""
    if number and isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if value is None:
        raise DataError(f"{where} has no {name} (must be a string)")
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} is {kind_of(value)} (must be a string)")
    return value
