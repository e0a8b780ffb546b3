"""What was read of tables, in words and for a run to keep: the columns, the header, rows kept and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chainrule.columns import CHOSEN, Columns, flag
from chainrule.data.read.tabular.columns import Places, Roles, choose
from chainrule.data.read.tabular.records import unit
from chainrule.data.read.tabular.table import Table, as_text
from chainrule.errors import DataError

BETWEEN = "\n"  # the columns of a text
COPIES = "copies of another row"


def copies_left_out(count: int) -> str:
    """For the end of a count: ", 3 copies left out", or nothing."""
    return f", {count:,} cop{'y' if count == 1 else 'ies'} left out" if count else ""


@dataclass(frozen=True)
class Reading:
    """How a table was read. The same columns of several files are one reading, of the files together."""

    path: Path
    header: bool | None
    spoken: dict[str, tuple[str, ...]]
    """The columns of each role, as a command names them."""
    shown: dict[str, str]
    """The same in words."""
    rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """How many rows were left out, by the reason."""

    @classmethod
    def begun(cls, table: Table, places: Places) -> Reading:
        """Of a table of which no row is read yet."""
        spoken = {role: tuple(map(table.spoken, chosen)) for role, chosen in places.items()}
        shown = {role: " + ".join(map(table.place_in_words, chosen)) for role, chosen in places.items()}
        return cls(table.path, table.header, spoken, shown)

    @property
    def kept(self) -> int:
        return self.rows - sum(self.dropped.values())

    @property
    def columns(self) -> dict[str, Any]:
        """The fields of `Columns` that read the same again."""
        found: dict[str, Any] = {
            flag(role): list(names) if role == "text" else names[0] for role, names in self.spoken.items()
        }
        return found | ({} if self.header is None else {"header": self.header})

    def counted(self, rows: int, dropped: dict[str, int]) -> Reading:
        """With the rows of a file that was read to its end."""
        together = Counter(self.dropped) + Counter(dropped)
        return Reading(self.path, self.header, self.spoken, self.shown, self.rows + rows, dict(together))

    def __str__(self) -> str:
        columns = ", ".join(f"{role} is {names}" for role, names in self.shown.items())
        rule = {
            None: "",
            True: "; the first row names the columns",
            False: "; no header: the first row is data",
        }
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items())
        lost = f"{self.rows - self.kept:,} dropped ({why})" if why else "none dropped"
        return (
            f"{self.path.name}: {columns}{rule[self.header]}; {self.rows:,} rows, {self.kept:,} kept, {lost}"
        )


Tell = Callable[[Reading], object]


def silent(reading: Reading) -> None:
    """Say nothing."""


def cells(
    table: Table, places: Places, *, empty: bool = False
) -> Iterator[tuple[int, tuple[str | None, ...]]]:
    """The texts of each role in each row, with its line or number; None for one that is not there

    Several columns of a role are one text, without those that are empty. With `empty` every row must have a string.
    """
    for number, row in table.rows([place for chosen in places.values() for place in chosen]):
        where, found = f"{table.path}: {unit(table.path)} {number}", []
        for role, chosen in places.items():
            parts = []
            for place in chosen:
                if (row[place] is None or row[place] != row[place]) and not empty:  # NaN is not itself
                    continue
                is_label = role == "label"
                text = as_text(row[place], where, repr(table.names[place]), number=is_label)
                parts.append(text.strip() if is_label else text)  # "good" and " good" are one class
            found.append(BETWEEN.join(filter(str.strip, parts)) if len(parts) > 1 else "".join(parts))
        yield number, tuple(text if empty or text.strip() else None for text in found)


def read_rows(
    path: Path, roles: Roles, columns: Columns = CHOSEN, *, strip: bool = False, copies: bool = False
) -> tuple[list[tuple[str, ...]], Reading]:
    """The rows of a table that have all roles, each once unless `copies` are asked for, and how they were read."""
    table = Table.open(path, columns)
    places = choose(table, roles, columns)
    found: list[tuple[str, ...]] = []
    seen: set[tuple[str, ...]] = set()
    dropped, total = Counter[str](), 0
    for _, row in cells(table, places):
        total += 1
        kept = tuple(text.strip() if strip else text for text in row if text is not None)
        if len(kept) < len(roles):
            dropped[f"without a {roles[row.index(None)]}"] += 1
        elif kept in seen and not copies:
            dropped[COPIES] += 1
        else:
            seen.add(kept)
            found.append(kept)
    reading = Reading.begun(table, places).counted(total, dict(dropped))
    if not found:
        raise DataError(f"{reading} (must keep at least one row: choose other columns, or fill them)")
    return found, reading


def joined(readings: Sequence[Reading]) -> Reading | None:
    """The reading of several files as one; they must have the same columns."""
    if not readings:
        return None
    first = readings[0]
    for other in readings[1:]:
        if other.columns != first.columns:
            said = f"{other.columns} in {other.path}, {first.columns} in {first.path}"
            raise DataError(f"columns: {said} (must be the same in all files: say which)")
        first = first.counted(other.rows, other.dropped)
    return first
