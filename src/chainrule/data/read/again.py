"""Other data, read like those of a run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.documents import find_files
from chainrule.data.read.tabular.columns import ROLES, place_of
from chainrule.data.read.tabular.table import Table, is_table
from chainrule.errors import DataError


def as_before(name: str | os.PathLike[str], asked: Columns, before: Columns, own: str = "") -> Columns:
    """The columns that are asked for; what is not said is as in other data, `before`, if these tables have it too.

    The data of the run itself, called `own`, are read as they were.
    """
    if before == CHOSEN:
        return asked
    if str(Path(name).absolute()) == own:
        return asked.filled(before)
    try:
        tables = [path for path in find_files(name) if is_table(path)]
    except DataError:  # no files: the one that reads them says what they are
        return asked
    alike = tables and all(_alike(path, asked, before) for path in tables)
    return asked.filled(before) if alike else asked


def _alike(path: Path, asked: Columns, before: Columns) -> bool:
    """A table has the columns that are not asked for otherwise, and names them if those `before` had names."""
    kept = [said for role in ROLES if not asked.asked(role) for said in before.asked(role)]
    unnamed = before.header and all(said.isdecimal() for said in kept)  # nothing but their numbers is known
    both = asked.filled(before)
    table = Table.open(path, both if unnamed else replace(both, header=asked.header))
    if (table.header is False) != (before.header is False):
        return False
    try:
        return all(place_of(table, said) >= 0 for said in kept)
    except DataError:
        return False
