"""Sentences with a tag for each word.

A line per word, the word first and its tag last, a tab or spaces between them; an empty line after each sentence:

    Ada         B-PER
    Lovelace    I-PER
    wrote       O
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chainrule.columns import CHOSEN, Columns, flag
from chainrule.data import corpora
from chainrule.data.read.documents import text_lines
from chainrule.data.read.tabular.columns import LABELED
from chainrule.data.read.tabular.reading import Reading
from chainrule.errors import DataError, Setting

DOCUMENT = "-DOCSTART-"  # separates documents in CoNLL's files


class Tagged(NamedTuple):
    """The words of a sentence, and a tag for each."""

    words: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


def read_tagged(path: Path, columns: Columns = CHOSEN) -> list[Tagged]:
    """The sentences of a file; `columns` may give the numbers of the columns of words and of tags."""
    word_place, tag_place = (_number(path, columns, role) for role in LABELED)
    found: list[Tagged] = []
    gathered: list[tuple[str, str]] = []
    for number, line in text_lines(corpora.find(path)):
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
        word = _cell(cells, word_place, 0)
        tag = _cell(cells, tag_place, -1) if len(cells) > 1 else ""
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


def reading_of(path: Path, columns: Columns, sentences: Sequence[Tagged]) -> Reading:
    """How the file of these sentences was read: rows are words."""
    spoken = {role: columns.asked(role) for role in LABELED if columns.asked(role)}
    usual = dict(zip(LABELED, ("the first column", "the last column"), strict=True))
    shown = usual | {role: f"column {names[0]}" for role, names in spoken.items()}
    return Reading(path, None, spoken, shown, sum(len(sentence.words) for sentence in sentences))


def _number(path: Path, columns: Columns, role: str) -> int | None:
    """The place of a column, from 0; None if none is asked for."""
    asked = columns.asked(role)
    if not asked:
        return None
    if len(asked) > 1 or not asked[0].isdecimal() or not int(asked[0]):
        said = f" is {','.join(asked)!r} (must be a number from 1: lines of words and tags name no columns)"
        raise DataError(f"{path}: ", Setting(flag(role)), said)
    return int(asked[0]) - 1


def _cell(cells: list[str], place: int | None, default: int) -> str:
    """The cell at `place`, or at `default` if place is None; empty if the line is too short."""
    if place is None:
        return cells[default] if cells else ""
    return cells[place] if place < len(cells) else ""
