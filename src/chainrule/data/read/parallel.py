"""Pairs of texts, a source and its target, found by name like a corpus.

.tsv .csv .parquet    columns source and target, or the first two of a table without a header
.jsonl                fields source and target, instruction and output, or others of `NAMED`
.dict                 a word, white space, its pronunciation: the format of CMUdict
train.de+train.en     two files, line by line
docstrings            built in: functions of the standard library and what they do
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from chainrule.data import corpora
from chainrule.data.read.documents import is_table, read_documents, text_lines
from chainrule.errors import DataError

NAMED = (
    ("source", "target"), ("src", "tgt"), ("instruction", "output"), ("input", "output"),
    ("prompt", "completion"), ("question", "answer"),
)  # fmt: skip
PLACES = ("1", "2")
# Names of columns: two different ones in the first row of a table are a header, not a pair. Language codes that are
# also words, such as "it" and "es", are not in the list.
HEADERS = {name for names in NAMED for name in names} | {
    "text", "translation", "trg", "word", "pronunciation", "spelling", "phonemes",
    "english", "german", "french", "spanish", "italian", "dutch", "russian", "chinese", "japanese", "portuguese",
    "polish", "czech", "swedish", "finnish", "turkish", "arabic", "hindi", "ukrainian", "latin",
    "en", "de", "fr", "nl", "ru", "zh", "ja", "pt", "pl", "cs", "sv", "fi",
    "eng", "deu", "ger", "fra", "fre", "spa", "ita", "nld", "rus", "zho", "jpn", "por",
}  # fmt: skip


@dataclass(frozen=True)
class PairCorpus:
    """Pairs of texts with the name under which `load_pairs` finds them, their version and hash."""

    name: str
    version: str
    pairs: tuple[tuple[str, str], ...] = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Of all texts in order."""
        hashed = hashlib.sha256()
        for text in (text for pair in self.pairs for text in pair):
            hashed.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return hashed.hexdigest()


def load_pairs(name: str | Path = "docstrings") -> PairCorpus:
    """The pairs of a file, of two files A+B, or the built-in docstrings, without duplicates.

    >>> from chainrule.data import load_pairs
    >>> source, target = load_pairs("docstrings").pairs[0]
    >>> source.startswith("def ")
    True
    """
    if name == "docstrings":
        pairs, where, version = _docstrings(), str(name), corpora.VERSION
    else:
        files = _files(name)
        pairs = _two(*files) if len(files) == 2 else _one(files[0])
        where, version = "+".join(str(path.absolute()) for path in files), "file"
    found = tuple(dict.fromkeys(pair for pair in pairs if all(pair)))
    if not found:
        raise DataError(f"{name}: no pairs (must have a source and a target each)")
    return PairCorpus(where, version, found)


def _files(name: str | Path) -> list[Path]:
    """One file, or two as A+B; a file may have a + in its name."""
    parts = [name] if Path(name).exists() else str(name).split("+")
    if len(parts) > 2:
        raise DataError(f"{name}: {len(parts)} files (must be one, or two as A+B without another +)")
    return [Path(part) for part in parts]


def _docstrings() -> Iterator[tuple[str, str]]:
    for document in read_documents("docstrings"):
        head, _, summary = document.text.partition('\n    """')
        yield head, summary.removesuffix('"""')


def _one(path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".dict":
        for line in read_documents(path, by="line"):
            word, *spoken = line.text.partition("#")[0].split() or [""]
            if not word.startswith(";;;"):  # a comment in older versions
                yield re.sub(r"\(\d+\)$", "", word), " ".join(spoken)
        return
    if not is_table(path):
        rule = "must be .tsv, .csv, .jsonl, .parquet or .dict, or A+B"
        raise DataError(f"{path}: not a file of pairs ({rule})")
    columns = _columns(path)
    readers = [read_documents(path, field=column) for column in columns]
    for number, row in enumerate(zip(*readers, strict=True)):
        source, target = (cell.text.strip() for cell in row)
        names = {source.casefold(), target.casefold()}
        header = not number and columns == PLACES and len(names) == 2 and names <= HEADERS
        if not header:
            yield source, target


def _columns(path: Path) -> tuple[str, str]:
    """The columns of sources and targets: the first known pair of names, or the first two columns."""
    if not path.exists():
        raise DataError(f"{path}: no such file (must be a file of pairs, two files A+B, or docstrings)")
    for names in (*NAMED, PLACES):
        try:
            for name in names:
                next(iter(read_documents(path, field=name)), None)
        except DataError as error:
            problem = error
            continue
        return names
    known = ", ".join(" and ".join(names) for names in NAMED)
    raise DataError(f"{path}: no columns {known}, nor two columns without names ({problem})")


def _two(first: Path, second: Path) -> Iterator[tuple[str, str]]:
    """Pairs line by line. Empty lines are kept: dropping one would shift all pairs after it."""
    files = (corpora.find(path) for path in (first, second))
    sources, targets = ([line.strip() for _, line in text_lines(file)] for file in files)
    if len(sources) != len(targets):
        raise DataError(
            f"{first} has {len(sources)} lines, {second} {len(targets)} (must be equal: pairs are line by line)"
        )
    yield from zip(sources, targets, strict=True)
