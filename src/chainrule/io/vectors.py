"""Word vectors as text, and the lists they are evaluated on.

    vectors     a first line `WORDS DIMENSIONS`, then a word and its numbers per line, as in word2vec and gensim
    pairs       two words and how similar people find them (WordSim-353)
    analogies   four words per line, `: name` begins a section (Google's questions-words.txt)

All are in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError, FormatError
from chainrule.files import new_file

Pair = tuple[str, str, float]


def write_vectors(path: str | Path, words: Sequence[str], matrix: npt.NDArray[Any]) -> None:
    """Write words and matrix (V, C), completely or not at all; float32 is restored exactly."""
    path, table = Path(path), np.asarray(matrix, np.float32)
    if table.ndim != 2 or len(words) != len(table):
        raise DataError(
            f"{path}: {len(words)} words, vectors of shape {table.shape} (must be one row per word)"
        )
    for word in words:
        if not word or len(word.split()) != 1:
            raise DataError(f"{path}: word {word!r} (must not be empty or hold spaces in this format)")
    numbers = " ".join(["%.9g"] * table.shape[1])
    with new_file(path, replace=True) as file:
        file.write(f"{len(words)} {table.shape[1]}\n".encode())
        for word, row in zip(words, table, strict=True):
            file.write(f"{word} {numbers % tuple(row.tolist())}\n".encode())


def read_vectors(path: str | Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    """The words and the matrix (V, C) of a file."""
    lines = _lines(Path(path))
    number, header = next(lines, (1, ""))
    fields = header.split()
    if len(fields) != 2 or not all(re.fullmatch("[0-9]{1,9}", f) for f in fields) or int(fields[1]) < 1:
        raise FormatError(f"{path}: line 1 is {header[:40]!r} (must be `WORDS DIMENSIONS`)")
    V, C = map(int, fields)
    rows: dict[str, npt.NDArray[np.float32]] = {}
    for number, line in lines:
        word, *numbers = line.rstrip().rsplit(" ", C)  # words of other tools may contain spaces
        row = _row(numbers, C)
        if row is None or not word:
            raise FormatError(
                f"{path}: line {number} is {line[:40]!r} (must be a word and {C} finite numbers)"
            )
        if word in rows:
            raise FormatError(f"{path}: line {number} repeats the word {word!r} (each must occur once)")
        rows[word] = row
    if len(rows) != V:
        raise FormatError(f"{path}: {len(rows)} vectors, the first line says {V} (must be equal)")
    return list(rows), np.stack(list(rows.values())) if rows else np.empty((0, C), np.float32)


def read_pairs(path: str | Path) -> list[Pair]:
    """Lines of two words and a score, such as WordSim-353; lines that begin with # are skipped."""
    pairs = []
    for number, line in _lines(Path(path)):
        fields = line.split()
        score = _row(fields[2:], 1)
        if line.startswith("#"):
            continue
        if score is None:
            raise FormatError(f"{path}: line {number} is {line[:40]!r} (must be two words and a score)")
        pairs.append((fields[0], fields[1], float(fields[2])))
    return pairs


def read_analogies(path: str | Path) -> dict[str, list[tuple[str, ...]]]:
    """Sections of questions a : b = c : d, four words each; `: name` begins a section."""
    sections: dict[str, list[tuple[str, ...]]] = {}
    questions: list[tuple[str, ...]] | None = None
    for number, line in _lines(Path(path)):
        if line.startswith(":"):
            questions = sections.setdefault(line[1:].strip(), [])
        elif questions is None or len(line.split()) != 4:
            raise FormatError(
                f"{path}: line {number} is {line[:40]!r} (must be four words, in a section `: name`)"
            )
        else:
            questions.append(tuple(line.split()))
    return sections


def _row(fields: list[str], C: int) -> npt.NDArray[np.float32] | None:
    """C finite numbers, or None"""
    try:
        row = np.array(fields, dtype=np.float32)
    except ValueError:
        return None
    return row if len(row) == C and np.isfinite(row).all() else None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without empty ones"""
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 after line {number} (must be text)") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
