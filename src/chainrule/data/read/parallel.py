"""Pairs of texts, a source and its target, found by name like a corpus.

.tsv .csv .parquet    columns source and target, or others by `columns.py`
.jsonl                fields source and target, instruction and output, or others by `columns.py`
.dict                 a word, white space, its pronunciation: the format of CMUdict
train.de+train.en     two files, line by line
docstrings            built in: functions of the standard library and what they do
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data import corpora
from chainrule.data.read.documents import read_documents, text_lines
from chainrule.data.read.tabular.columns import PAIRED, no_table
from chainrule.data.read.tabular.reading import Reading, read_rows
from chainrule.data.read.tabular.table import is_table
from chainrule.errors import DataError


@dataclass(frozen=True)
class PairCorpus:
    """Pairs of texts with the name under which `load_pairs` finds them, their version and hash."""

    name: str
    version: str
    pairs: tuple[tuple[str, str], ...] = field(repr=False)
    reading: Reading | None = field(default=None, repr=False, compare=False)
    """How a table was read."""

    @cached_property
    def sha256(self) -> str:
        """Of all texts in order."""
        hashed = hashlib.sha256()
        for text in (text for pair in self.pairs for text in pair):
            hashed.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return hashed.hexdigest()


def load_pairs(name: str | os.PathLike[str] = "docstrings", columns: Columns = CHOSEN) -> PairCorpus:
    """The pairs of a file, of two files A+B, or the built-in docstrings, without duplicates.

    `columns` says which columns of a table they are.

    >>> from chainrule.data import load_pairs
    >>> source, target = load_pairs("docstrings").pairs[0]
    >>> source.startswith("def ")
    True
    """
    reading: Reading | None = None
    pairs: Iterable[tuple[str, ...]]
    if name == "docstrings":
        pairs, where, version = _docstrings(), str(name), corpora.VERSION
    else:
        files = _files(name)
        if len(files) == 2:
            pairs = _two(*files)
        elif files[0].exists() and is_table(files[0]):
            pairs, reading = read_rows(files[0], PAIRED, columns, strip=True)
        else:
            pairs = _one(files[0])
        where, version = "+".join(str(path.absolute()) for path in files), "file"
    if reading is None:
        no_table(name, columns)
    found = tuple(dict.fromkeys((pair[0], pair[1]) for pair in pairs if all(pair)))
    if not found:
        raise DataError(f"{name}: no pairs (must have a source and a target each)")
    return PairCorpus(where, version, found, reading)


def _files(name: str | os.PathLike[str]) -> list[Path]:
    """One file, or two as A+B; a file may have a + in its name."""
    parts = [name] if Path(name).exists() else os.fspath(name).split("+")
    if len(parts) > 2:
        raise DataError(f"{name}: {len(parts)} files (must be one, or two as A+B without another +)")
    return [Path(part) for part in parts]


def _docstrings() -> Iterator[tuple[str, str]]:
    for document in read_documents("docstrings"):
        head, _, summary = document.text.partition('\n    """')
        yield head, summary.removesuffix('"""')


def _one(path: Path) -> Iterator[tuple[str, str]]:
    """The pairs of a dictionary, after a check that it is one."""
    if not path.exists():
        raise DataError(f"{path}: no such file (must be a file of pairs, two files A+B, or docstrings)")
    if path.suffix != ".dict":
        rule = "must be .tsv, .csv, .jsonl, .parquet or .dict, or A+B; chainrule embed reads plain texts"
        raise DataError(f"{path}: not a file of pairs ({rule})")
    return _dictionary(path)


def _dictionary(path: Path) -> Iterator[tuple[str, str]]:
    for line in read_documents(path, by="line"):
        word, *spoken = line.text.partition("#")[0].split() or [""]
        if not word.startswith(";;;"):  # a comment in older versions
            yield re.sub(r"\(\d+\)$", "", word), " ".join(spoken)


def _two(first: Path, second: Path) -> Iterator[tuple[str, str]]:
    """Pairs line by line. Empty lines are kept: dropping one would shift all pairs after it."""
    files = (corpora.find(path) for path in (first, second))
    sources, targets = ([line.strip() for _, line in text_lines(file)] for file in files)
    if len(sources) != len(targets):
        raise DataError(
            f"{first} has {len(sources)} lines, {second} {len(targets)} (must be equal: pairs are line by line)"
        )
    yield from zip(sources, targets, strict=True)
