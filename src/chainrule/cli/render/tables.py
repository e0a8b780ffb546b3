"""Tables: columns of text, and entries by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as what is in them; numbers stand to the right."""
    columns = []
    for column in zip(head, *rows, strict=True):
        width = max(map(len, column))
        numbers = all(cell[:1].isdecimal() or cell == "-" for cell in column[1:])
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def show(answer: dict[str, Any], as_json: bool) -> None:
    """One line per entry for people, or one JSON object for machines."""
    if as_json:
        print(json.dumps(answer))
        return
    width = max(map(len, answer))
    for name, value in answer.items():
        print(f"{name:<{width}}  {_plain(value)}")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
