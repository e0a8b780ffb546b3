"""Text as wide as the terminal: paragraphs, and names with what is said of them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

MOST_WIDTH = 100
LEAST = 30  # columns that a text beside a name needs; with fewer it stands below


def width() -> int:
    """Columns to write in."""
    return min(MOST_WIDTH, shutil.get_terminal_size().columns)


def paragraph(text: str, width: int) -> list[str]:
    """The lines of a text."""
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)


def entry(name: str, text: str, column: int, width: int) -> Iterator[str]:
    """A name, and beside it from `column` on, or below it if there is no space, what it is."""
    beside = width - column >= LEAST
    column = column if beside else 6
    lines = paragraph(text, width - column)
    if beside and len(name) + 2 <= column and lines:
        name, lines = f"{name:<{column}}{lines[0]}", lines[1:]
    yield from _folded(name, width)
    yield from (" " * column + line for line in lines)


def _folded(name: str, width: int) -> Iterator[str]:
    """A name that is too long for a line goes on below, after one of the choices that it lists."""
    while len(name) > width and (cut := name.rfind("|", 0, width) + 1):
        yield name[:cut]
        name = " " * 6 + name[cut:]
    yield name
