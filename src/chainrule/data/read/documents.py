"""Documents, read one at a time from files of several formats.

    .txt      the whole file, each paragraph, or each line; likewise a file with any other ending
    .jsonl    an object per line, the text in one field
    .csv .tsv a record per document, the text in one column
    .parquet  the same; needs pyarrow

All may be compressed, as .jsonl.gz. A broken file is a DataError that names the file and the line.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainrule.data import corpora
from chainrule.data.downloads import NAMED
from chainrule.data.read.files import lines, read_text
from chainrule.data.read.records import kind, objects, parquet, rows, some
from chainrule.errors import ConfigError, DataError

UNITS = ("file", "paragraph", "line")


@dataclass(frozen=True, slots=True)
class Document:
    """A text, and where it begins: its line in a file, record in a .parquet, or number in a corpus."""

    text: str
    source: str
    line: int = 1


Name = str | os.PathLike[str]


def read_documents(
    names: Name | Iterable[Name], *, by: str | None = None, field: str = "text", numbers: bool = False
) -> Iterator[Document]:
    """The documents of files, folders, patterns such as `texts/*.jsonl` and corpora, read lazily.

    In plain text a document is a "file", "paragraph" or "line", as `by` says (default: the file; the line in lists of
    names). `field` names the field of an object or the column of a table; a number, from 1, is a column of a table
    without a header. With `numbers` a field may hold an integer instead of text, as labels do.

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
            yield from READERS.get(kind(path), _text)(path, unit, field, numbers)


def find_files(name: Name) -> list[Path]:
    """The files of a path, a folder, a pattern or a named corpus, in a fixed order."""
    path = Path(name)
    if path.is_dir():
        inside = (Path(folder, file) for folder, _, files in os.walk(path) for file in files)
        shown = (p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts))
        found = [p for p in shown if kind(p) in READERS]
        if not found:
            raise DataError(f"{path}: no {', '.join(READERS)} in this directory (must hold at least one)")
        return sorted(found)
    if not path.exists() and glob.has_magic(str(name)):
        found = [Path(p) for p in glob.glob(os.fspath(name), recursive=True) if os.path.isfile(p)]
        if not found:
            raise DataError(f"{name}: no file matches (must match at least one)")
        return sorted(found)
    return [corpora.find(name)]


def _text(path: Path, by: str, field: str, numbers: bool) -> Iterator[Document]:
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


def _jsonl(path: Path, by: str, field: str, numbers: bool) -> Iterator[Document]:
    for number, record in objects(path):
        where = f"{path}: line {number}"
        if field not in record:
            raise DataError(f"{where} has no field {field!r} (there are {some(record)})")
        yield Document(_string(record[field], where, field, numbers), str(path), number)


def _table(path: Path, by: str, field: str, numbers: bool) -> Iterator[Document]:
    column: int | None = None
    for line, row in rows(path):
        if column is None:
            column = int(field) - 1 if field.isdecimal() else -1
            if not 0 <= column < len(row):
                if field not in row:
                    rule = f"there are {some(row)}; without a header take a number from 1 to {len(row)}"
                    raise DataError(f"{path}: line {line} has no column {field!r} ({rule})")
                column = row.index(field)
                continue
        yield Document(row[column], str(path), line)


def _parquet(path: Path, by: str, field: str, numbers: bool) -> Iterator[Document]:
    for number, record in parquet(path, field):
        where = f"{path}: record {number}"
        yield Document(_string(record[field], where, field, numbers), str(path), number)


def _string(value: Any, where: str, field: str, numbers: bool) -> str:
    if numbers and isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise DataError(f"{where}: {field!r} is a {type(value).__name__} (must be a string)")
    return value


Reader = Callable[[Path, str, str, bool], Iterator[Document]]
TABLES: dict[str, Reader] = {".jsonl": _jsonl, ".csv": _table, ".tsv": _table, ".parquet": _parquet}
READERS: dict[str, Reader] = {".txt": _text, **TABLES}


def is_table(path: Path) -> bool:
    """Whether the file holds records with fields rather than plain text."""
    return kind(path) in TABLES
