"""A sign of life while something takes its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A moving line on stderr, on terminals only."""
    with Console(stderr=True).status(f"{what} …"):
        yield
