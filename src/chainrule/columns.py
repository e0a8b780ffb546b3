"""What is said about the columns of a table; `data/read/tabular/columns.py` finds them, and chooses what is not said.

It is here so that commands can show the flags without loading what reads tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read, each by its name or its number from 1; what is not said is chosen."""

    text_column: tuple[str, ...] = ()
    """Of a table: the column, or field of a .jsonl, that holds the text, by name or number. Several are joined by line
    ends: title,body. Default: the one called text, or like it."""
    label_column: str | None = None
    """Of a table: the column that holds the label, by name or number. Default: the one called label, or like it."""
    source_column: str | None = None
    """Of a table: the column that holds the source, by name or number. Default: the one called source, or like it."""
    target_column: str | None = None
    """Of a table: the column that holds the target, by name or number. Default: the one called target, or like it."""
    other_column: str | None = None
    """Of a table: the column that holds the second text of a pair, by name or number."""
    header: bool | None = None
    """The first row of a .csv or .tsv names the columns; --no-header: it is data. Default: as it looks."""

    def __post_init__(self) -> None:
        said: Any = self.text_column  # in Python one may be a string; JSON knows lists only
        object.__setattr__(self, "text_column", (said,) if isinstance(said, str) else tuple(said))

    def asked(self, role: str) -> tuple[str, ...]:
        """What is said of the column of a role."""
        said = getattr(self, flag(role))
        return said if isinstance(said, tuple) else (said,) if said is not None else ()

    def filled(self, before: Columns) -> Columns:
        """With what `before` says where nothing is said here

        >>> from chainrule.data import Columns
        >>> Columns(header=True).filled(Columns("body", "topic")) == Columns("body", "topic", header=True)
        True
        """
        said = {name: value for name, value in vars(self).items() if value not in (None, ())}
        return replace(before, **said)


CHOSEN = Columns()  # nothing is said: the rule chooses


def flag(role: str) -> str:
    """The field of `Columns` for a role, which is a flag of commands."""
    return f"{role}_column"
