"""How far a command has come, on stderr, once it has taken two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import chainrule as cr

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

PATIENCE = 2.0  # seconds before the first word
REFRESH, PLAIN = 0.2, 10.0  # seconds between words, on a terminal and elsewhere

# Whatever goes wrong with telling, such as a terminal that was closed (rich then exits), the work goes on.
SILENT = (Exception, SystemExit)


class Progress:
    """A live line on a terminal, a plain one now and then elsewhere.

    A thread tells it, since a single step, such as a document of 100 MB, may take minutes.

    with Progress("read") as progress:
        progress.say("12 documents")
    """

    def __init__(self, what: str, console: Console | None = None) -> None:
        self.what = what
        self.done = ""
        self._console = console
        self.status: Status | None = None
        self.over = threading.Event()
        self.teller = threading.Thread(target=self._tell, daemon=True)

    @property
    def console(self) -> Console:
        """Where it is told; most commands are over before there is anything to tell."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        return self._console

    def __enter__(self) -> Progress:
        self.began = time.monotonic()
        with suppress(RuntimeError):  # no thread to be had: work in silence
            self.teller.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        if self.teller.ident is not None:
            self.teller.join()
        if self.status:
            with suppress(*SILENT):
                self.status.stop()

    def say(self, done: str) -> None:
        self.done = done

    def turn(self, what: str) -> None:
        """Other work begins now."""
        self.what, self.done, self.began = what, "", time.monotonic()

    def _tell(self) -> None:
        pause = PATIENCE
        while not self.over.wait(pause):
            pause = REFRESH if self.console.is_terminal else PLAIN
            seconds = f"{time.monotonic() - self.began:.0f} s"
            try:
                self._show(f"{self.what}: {', '.join(filter(None, (self.done, seconds)))}")
            except SILENT:
                return

    def _show(self, text: str) -> None:
        if not self.console.is_terminal:
            self.console.print(text, markup=False)
            return
        if not self.status:
            self.status = self.console.status("")
            self.status.start()
        self.status.update(text.replace("[", r"\["))  # not markup

    def documents(self, documents: Iterable[cr.data.Document]) -> Iterator[cr.data.Document]:
        """The documents, counted as they pass."""
        size = 0
        for number, document in enumerate(documents, start=1):
            size += len(document.text)
            several = "" if number == 1 else "s"
            self.say(f"{number:,} document{several}, {size / 1e6:.1f} million characters")
            yield document
