"""Sentences with a tag for each word.

A line per word, the word first and its tag last, a tab or spaces between them; an empty line after each sentence:

    Ada         B-PER
    Lovelace    I-PER
    wrote       O
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from chainrule.data import corpora
from chainrule.data.read.documents import text_lines
from chainrule.errors import DataError

DOCUMENT = "-DOCSTART-"  # separates documents in CoNLL's files


class Tagged(NamedTuple):
    """The words of a sentence, and a tag for each."""

    words: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


def read_tagged(path: Path) -> list[Tagged]:
    """The sentences of a file."""
    found: list[Tagged] = []
    gathered: list[tuple[str, str]] = []
    for number, line in text_lines(corpora.find(path)):
        word, *more = line.split("\t") if "\t" in line else line.split() or [""]
        word, tag = word.strip(), more[-1].strip() if more else ""
        if bool(word) != bool(tag):
            raise DataError(f"{path}: line {number} is {line.strip()!r} (must be a word, a tab and its tag)")
        if word and word != DOCUMENT:
            gathered.append((word, tag))
        elif gathered:
            found.append(Tagged(*zip(*gathered, strict=True)))
            gathered = []
    if gathered:
        found.append(Tagged(*zip(*gathered, strict=True)))
    return found
