"""Records with fields: objects of a .jsonl or of a .json list, rows of a .csv or .tsv, records of a .parquet.

Each may be compressed too.

A broken file is a DataError that names the file and the line.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from chainrule.data.read.files import is_packed, lines, read_text, reading, too_large, unpack_limit
from chainrule.data.read.tabular.dialect import dialect
from chainrule.errors import ConfigError, DataError, kind_of

Record = dict[str, Any]


def kind(path: Path) -> str:
    """The suffix that names the format, in lower case: .jsonl for a.jsonl.gz, .csv for A.CSV."""
    return Path(path.stem if is_packed(path) else path.name).suffix.lower()


def unit(path: Path) -> str:
    """What the number of a record counts: lines, or records where there are none."""
    return "record" if kind(path) == ".parquet" else "line"


def records(path: Path) -> Iterator[tuple[int, Record]]:
    """The records of a file of any of these formats, each with its line or number."""
    if kind(path) in (".csv", ".tsv"):
        return _named(path)
    if kind(path) == ".parquet":
        return parquet(path)
    if kind(path) == ".jsonl":
        return objects(path)
    if kind(path) == ".json":
        return listed(path)
    raise DataError(f"{path}: not a known format of records (must be .jsonl, .json, .csv, .tsv or .parquet)")


def objects(path: Path) -> Iterator[tuple[int, Record]]:
    """The objects of a .jsonl with their line numbers; empty lines are skipped."""
    for number, line in lines(path):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} is not JSON: {error} (must be one object per line)") from error
        if not isinstance(record, dict):
            raise DataError(f"{where} holds {kind_of(record)} (must be an object per line)")
        yield number, record


def listed(path: Path) -> Iterator[tuple[int, Record]]:
    """The objects of a list in a .json, each with the line where it begins."""
    text, decoder, blank = read_text(path), json.JSONDecoder(), re.compile(r"\s*")

    def after(place: int) -> int:
        return blank.match(text, place).end()  # type: ignore[union-attr]  # which matches nothing too

    place, line, counted = after(0), 1, 0
    if text[place : place + 1] != "[":
        raise DataError(
            f"{path}: does not begin with [ (must be a list of objects; for one per line, .jsonl)"
        )
    place = after(place + 1)
    while text[place : place + 1] != "]":
        line, counted = line + text.count("\n", counted, place), place
        try:
            record, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: the record in line {line} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}: line {line} holds a {type(record).__name__} (must be an object)")
        yield line, record
        place = after(end)
        if text[place : place + 1] not in (",", "]"):
            raise DataError(f"{path}: the record in line {line} is not followed by a comma or ] (must be)")
        place = after(place + 1) if text[place] == "," else place


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with the lines where they begin; all must have as many cells as the first."""
    form = dialect(path, kind(path))
    found = csv.reader((line + "\n" for _, line in lines(path)), strict=True, **form)
    number = width = 0
    while True:
        first = found.line_num + 1
        try:
            row = next(found)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}: record in line {first} is broken: {error}") from error
        if not "".join(row).strip():
            continue
        number += 1
        width = width or len(row)
        if len(row) != width:
            quoted = (
                ""
                if form["quoting"] == csv.QUOTE_NONE
                else f", and a cell with {form['delimiter']!r} in quotes"
            )
            said = f"row {number}, in line {first}, has {len(row)} cells, the first row {width}"
            raise DataError(f"{path}: {said} (must be equal{quoted})")
        yield first, row


def _named(path: Path) -> Iterator[tuple[int, Record]]:
    """The rows after the header, as records."""
    names: list[str] | None = None
    for line, row in rows(path):
        if names is not None:
            yield line, dict(zip(names, row, strict=True))
        names = names or row


def parquet_names(path: Path) -> list[str]:
    """The names of the columns of a .parquet."""
    return list(next(_parquet(path, None))[1])


def parquet(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Record]]:
    """The records of a .parquet with their numbers; some columns or all."""
    found = _parquet(path, columns)
    next(found)
    yield from found


def _parquet(path: Path, columns: Sequence[str] | None) -> Iterator[tuple[int, Record]]:
    """The names of all columns, as record 0, and the records."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(f"{path}: needs pyarrow (pip install 'chainrule[data]')") from error
    with reading(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(file)
            names = table.schema_arrow.names
            yield 0, dict.fromkeys(names)
            # A text that occurs often is stored once, and stays so in memory.
            texts = [field.name for field in table.schema_arrow if pyarrow.types.is_string(field.type)]
            table = pyarrow.parquet.ParquetFile(file, read_dictionary=texts)
            yield from enumerate(_counted(path, table, list(columns or names)), start=1)
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError) as error:
            raise DataError(f"{path}: is not a valid .parquet file ({error})") from error


def _counted(path: Path, table: Any, names: list[str]) -> Iterator[Record]:
    """The records of a .parquet, one at a time, up to the limit of what it may unpack to."""
    limit, size = unpack_limit(path), 0
    groups = (table.metadata.row_group(i) for i in range(table.metadata.num_row_groups))
    if any(group.total_byte_size > limit for group in groups):
        raise too_large(path, limit)
    for batch in table.iter_batches(batch_size=1024, columns=names):
        names = batch.schema.names
        for values in zip(*map(_values, batch.columns), strict=True):
            size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in values)
            if size > limit:
                raise too_large(path, limit)
            yield dict(zip(names, values, strict=True))


def _values(column: Any) -> Iterator[Any]:
    """The values of a column, one at a time."""
    if not hasattr(column, "dictionary"):
        yield from column.to_pylist()
        return
    known = column.dictionary.to_pylist()
    for place in column.indices.to_pylist():
        yield None if place is None else known[place]


def some(names: Iterable[str]) -> str:
    """Names for a message, at most 80 characters."""
    text = ", ".join(map(repr, names))
    return text if len(text) <= 80 else text[:79] + "…"
