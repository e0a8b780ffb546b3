"""Labeled texts and tagged sentences, found by name like a corpus."""

from __future__ import annotations

import hashlib
import io
import keyword
import os
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.labeled import Labeled, distinct_rows
from chainrule.data.read.parallel import load_pairs
from chainrule.data.read.tabular.columns import no_table
from chainrule.data.read.tabular.reading import Reading
from chainrule.data.read.tagged import Tagged, read_tagged, reading_of
from chainrule.errors import DataError

BUILT_IN = "docstrings"


@dataclass(frozen=True)
class LabelCorpus:
    """Labeled texts, the name by which they are found again, and their hash."""

    name: str
    version: str
    texts: tuple[Any, ...] = field(repr=False)
    """`Labeled` or `Tagged`: what has a `text` and `labels`."""
    reading: Reading | None = field(default=None, repr=False, compare=False)
    """How a table was read."""
    copies: int = field(default=0, repr=False, compare=False)
    """Texts that were left out, since they occur before."""

    @cached_property
    def sha256(self) -> str:
        """Of all texts and labels in order."""
        rows = "\0".join("\0".join((*row.labels, row.text)) for row in self.texts)
        return hashlib.sha256(rows.encode("utf-8", "surrogatepass")).hexdigest()


def load_labels(name: str | os.PathLike[str], columns: Columns = CHOSEN) -> LabelCorpus:
    """A file that `labeled_rows` reads; `docstrings` is built in: which text is code, which is prose?"""
    if name == BUILT_IN:
        no_table(name, columns)
        pairs = load_pairs(BUILT_IN)
        heads, summaries = zip(*pairs.pairs, strict=True)
        rows = [Labeled(t, "code") for t in heads] + [Labeled(t, "prose") for t in summaries]
        return LabelCorpus(BUILT_IN, pairs.version, tuple(dict.fromkeys(rows)))
    path = _there(name, "texts with labels")
    rows, reading, copies = distinct_rows(path, columns)
    return LabelCorpus(str(path.absolute()), "file", tuple(rows), reading, copies)


def load_tags(name: str | os.PathLike[str], columns: Columns = CHOSEN) -> LabelCorpus:
    """A file that `read_tagged` reads; `docstrings` is built in: heads of functions, and what each word is."""
    if name == BUILT_IN:
        no_table(name, columns)
        pairs = load_pairs(BUILT_IN)
        heads = [Tagged(*zip(*_python(head), strict=True)) for head, _ in pairs.pairs]
        return LabelCorpus(BUILT_IN, pairs.version, tuple(dict.fromkeys(heads)))
    path = _there(name, "sentences with tags")
    found = read_tagged(path, columns)
    reading = reading_of(path, columns, found)
    rows = tuple(dict.fromkeys(found))
    return LabelCorpus(str(path.absolute()), "file", rows, reading, len(found) - len(rows))


def _there(name: str | os.PathLike[str], what: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise DataError(f"{path}: no such file (must be {what}, or {BUILT_IN})")
    return path


def _python(code: str) -> Iterator[tuple[str, str]]:
    """The words of a line of Python, and what each is."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.string.strip():
            kind = "keyword" if keyword.iskeyword(token.string) else tokenize.tok_name[token.type].lower()
            yield token.string, kind
