"""Documents, read one at a time from files of several formats.

    .txt      the whole file, each paragraph, or each line; likewise a file with any other ending
    .jsonl    an object per line, the text in one field or in several
    .csv .tsv a row per document, the text in one column or in several
    .parquet  the same; needs pyarrow

All may be compressed, as .jsonl.gz. A broken file is a DataError that names the file and the line.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data import corpora
from chainrule.data.downloads import NAMED
from chainrule.data.read.files import lines, read_text
from chainrule.data.read.tabular.columns import TEXTS, choose
from chainrule.data.read.tabular.reading import Reading, Tell, cells, silent
from chainrule.data.read.tabular.records import kind
from chainrule.data.read.tabular.table import KINDS, Table, is_table
from chainrule.errors import ConfigError, DataError

UNITS = ("file", "paragraph", "line")
TEXT = ".txt"


@dataclass(frozen=True, slots=True)
class Document:
    """A text, and where it begins: its line in a file, record in a .parquet, or number in a corpus."""

    text: str
    source: str
    line: int = 1


Name = str | os.PathLike[str]
BATCH = 1 << 20  # characters handed to a worker at once


def read_documents(
    names: Name | Iterable[Name], *, by: str | None = None, columns: Columns = CHOSEN, tell: Tell = silent
) -> Iterator[Document]:
    """The documents of files, folders, patterns such as `texts/*.jsonl` and corpora, read lazily.

    In plain text a document is a "file", "paragraph" or "line", as `by` says (default: the file; the line in lists of
    names). `columns` says which columns of a table hold the text; `tell` is called with how each table was read.

    >>> from chainrule.data import read_documents
    >>> next(read_documents("docstrings")).text.startswith("def ")
    True
    """
    if by is not None and by not in UNITS:
        raise ConfigError(f"documents: by {by!r} (must be one of {', '.join(UNITS)})")
    if isinstance(names, str | os.PathLike):
        names = (names,)
    for name in names:
        if isinstance(name, str) and name in corpora.BUILT_IN:
            texts = enumerate(corpora.BUILT_IN[name].documents(), start=1)
            yield from (Document(text, name, number) for number, text in texts)
            continue
        listed = NAMED.get(Path(name).stem)
        for path in find_files(name):
            unit = by or (listed.by if listed else "file")
            yield from _table(path, columns, tell) if is_table(path) else _text(path, unit)


def find_files(name: Name) -> list[Path]:
    """The files of a path, a folder, a pattern or a named corpus, in a fixed order."""
    path = Path(name)
    if path.is_dir():
        inside = (Path(folder, file) for folder, _, files in os.walk(path) for file in files)
        shown = (p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts))
        found = [p for p in shown if kind(p) == TEXT or is_table(p)]
        if not found:
            raise DataError(
                f"{path}: no {', '.join((TEXT, *KINDS))} in this directory (must hold at least one)"
            )
        return sorted(found)
    if not path.exists() and glob.has_magic(str(name)):
        found = [Path(p) for p in glob.glob(os.fspath(name), recursive=True) if os.path.isfile(p)]
        if not found:
            raise DataError(f"{name}: no file matches (must match at least one)")
        return sorted(found)
    return [corpora.find(name)]


def _text(path: Path, by: str) -> Iterator[Document]:
    if by == "file":
        yield Document(read_text(path), str(path))
        return
    gathered: list[str] = []
    first = 1
    for number, line in text_lines(path):
        if by == "line" and line.strip():
            yield Document(line, str(path), number)
        elif line.strip():
            first = first if gathered else number
            gathered.append(line)
        elif gathered:
            yield Document("\n".join(gathered), str(path), first)
            gathered = []
    if gathered:
        yield Document("\n".join(gathered), str(path), first)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, including empty ones."""
    for number, line in lines(path):
        for piece in line.split("\r"):  # line ends of old Macs, as in `read_text`
            yield number, piece


def _table(path: Path, columns: Columns, tell: Tell) -> Iterator[Document]:
    """The rows of a table, empty ones too, so that documents and rows have the same numbers."""
    table = Table.open(path, columns)
    places = choose(table, TEXTS, columns)
    count = 0
    for line, (text,) in cells(table, places, empty=True):
        count += 1
        yield Document(text or "", str(path), line)
    tell(Reading.begun(table, places).counted(count, {}))


def batched(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in lists of about BATCH characters, for workers."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
