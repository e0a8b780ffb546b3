"""The columns of a table, a line each: what they hold, and what they cannot be used for."""

from __future__ import annotations

from chainrule.cli.render.tables import table
from chainrule.data.read.tabular.header import FEW
from chainrule.data.read.tabular.table import Table
from chainrule.tasks.answer_options import shorten

SHOWN = 40  # characters of an example


def overview(found: Table) -> list[str]:
    """Of each column its number, its name, how many of the first rows it fills, its values, and an example."""
    rows = []
    for place, name in enumerate(found.names):
        cells = found.column(place)
        example = shorten(" ".join(cells[0].split()), SHOWN) if cells else ""
        filled = f"{len(cells):,} of {len(found.sample):,}"
        rows.append(
            [str(place + 1), name, filled, f"{found.distinct(place):,}", remark(found, place), example]
        )
    return table(["number", "column", "filled", "values", "looks like", "first"], rows)


def remark(found: Table, place: int) -> str:
    """What the first rows make of a column."""
    cells, values = found.column(place), found.distinct(place)
    if not cells:
        return "empty"
    if found.counts_rows(place):
        return "numbers of rows"
    if values == 1 and len(cells) > 1:
        return "constant"
    return "labels" if FEW * values <= len(cells) else "texts"
