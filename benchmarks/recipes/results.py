"""What a recipe reached, in a file of benchmarks/results: its commands, and a table with the day of each row.

A program can run a part of its recipe: one task, one model, one seed. The rows of that part are replaced, others stay.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import ROOT
from benchmarks.report import cpu_name, markdown

RESULTS = ROOT / "benchmarks" / "results"
DAY = "day"


def write(
    name: str,
    title: str,
    commands: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    keys: int = 1,
    folder: Path = RESULTS,
) -> str:
    """Write recipe-NAME.md; its first `keys` cells tell which row a new one replaces."""
    path = folder / f"recipe-{name}.md"
    found = {tuple(row[:keys]): row for row in _rows(path, [*header, DAY])}
    found |= {tuple(row[:keys]): [*row, str(datetime.date.today())] for row in rows}
    about = f"{cpu_name()}; a new run replaces its rows."
    lines = "\n".join(f"    {command}" for command in commands)
    text = "\n\n".join([f"# {title}", about, lines, markdown([*header, DAY], found.values())]) + "\n"
    path.write_text(text, encoding="utf-8")
    return text


def _rows(path: Path, header: Sequence[str]) -> list[list[str]]:
    """The rows of the table in a file, if there is one with this header."""
    if not path.exists():
        return []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[2:] if rows[:1] == [list(header)] else []
