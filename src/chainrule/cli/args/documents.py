"""Options that every command on documents has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import chainrule as cr
from chainrule.cli.args.families import TEXT, without
from chainrule.cli.args.options import Argument, Without
from chainrule.cli.args.text import read_input
from chainrule.columns import Columns
from chainrule.errors import DataError

TextColumns = Annotated[Columns, Without(without(TEXT))]  # the column of texts, and the header
ChatColumns = Annotated[Columns, Without(("text_column", "label_column", "other_column"))]


@dataclass(frozen=True)
class Sources:
    """Where documents come from."""

    files: Annotated[tuple[str, ...], Argument("FILES")] = ("pydoc",)
    """Files (.txt .jsonl .csv .tsv .parquet, also .gz), directories, patterns, or corpora of `chainrule data list`."""
    by: Literal["file", "paragraph", "line"] | None = None
    """What a document is in plain text. Default: the file, in lists of names the line."""
    columns: TextColumns = field(default_factory=Columns)

    def read(self, *, quiet: bool = False) -> Iterator[cr.data.Document]:
        """The documents; how tables are read is said on stderr unless it has been."""
        tell = (lambda reading: None) if quiet else say_reading
        return cr.data.read_documents(self.files, by=self.by, columns=self.columns, tell=tell)


def say_reading(reading: cr.data.Reading | None) -> None:
    """How a table was read, on stderr, where it is in no program's way."""
    if reading is not None:
        print(reading, file=sys.stderr)


def texts_in(source: str, columns: Columns, what: str = "text") -> list[str]:
    """The lines of a text, empty ones too, so that answers and lines have the same numbers; or the rows of a table."""
    from chainrule.data.read.tabular.columns import no_table
    from chainrule.data.read.tabular.table import is_table

    if source != "-" and not Path(source).is_file():
        wrong = "is a directory" if Path(source).is_dir() else "no such file"
        raise DataError(f"{source}: {wrong} (must be a file with a {what} on each line)")
    if source != "-" and is_table(Path(source)):
        found = [d.text for d in cr.data.read_documents(source, columns=columns, tell=say_reading)]
    else:
        no_table(source, columns)
        text = read_input(source).replace("\r\n", "\n")
        found = text.removesuffix("\n").split("\n") if text else []
    if not found:
        raise DataError(f"{source}: is empty (must have a {what} on each line)")
    return found
