"""How far a command has come, on stderr, once it has taken two seconds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from chainrule.data import Document

PATIENCE = 2.0  # seconds before the first word
REFRESH, PLAIN = 0.2, 10.0  # seconds between words, on a terminal and elsewhere


class Progress:
    """A live line on a terminal, a plain one now and then elsewhere.

    with Progress("read") as progress:
        progress.say("12 documents")
    """

    def __init__(self, what: str, console: Console | None = None) -> None:
        self.what = what
        self.console = console or Console(stderr=True, highlight=False)
        self.status: Status | None = None

    def __enter__(self) -> Progress:
        self.next = time.monotonic() + PATIENCE
        return self

    def __exit__(self, *error: object) -> None:
        if self.status:
            self.status.stop()

    def say(self, done: str) -> None:
        now = time.monotonic()
        if now < self.next:
            return
        text = f"{self.what}: {done}"
        if not self.console.is_terminal:
            self.next = now + PLAIN
            self.console.print(text)
            return
        self.next = now + REFRESH
        if not self.status:
            self.status = self.console.status(text)
            self.status.start()
        self.status.update(text)

    def documents(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents, counted as they pass."""
        size = 0
        for number, document in enumerate(documents, start=1):
            size += len(document.text)
            self.say(f"{number:,} documents, {size / 1e6:.1f} million characters")
            yield document


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A moving line while something takes its time, on terminals only."""
    with Console(stderr=True).status(f"{what} …"):
        yield
