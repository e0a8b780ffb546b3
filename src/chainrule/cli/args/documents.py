"""Options that every command on documents has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import chainrule as cr
from chainrule.cli.args.options import Argument


@dataclass(frozen=True)
class Sources:
    """Where documents come from."""

    files: Annotated[tuple[str, ...], Argument("FILES")] = ("pydoc",)
    """Files (.txt .jsonl .csv .tsv .parquet, also .gz), directories, patterns, or corpora of `chainrule data list`."""
    by: Literal["file", "paragraph", "line"] | None = None
    """What a document is in plain text. Default: the file, in lists of names the line."""
    field: str = "text"
    """Field of a .jsonl, column of a table; a number for the column of a table without a header."""

    def read(self) -> Iterator[cr.data.Document]:
        return cr.data.read_documents(self.files, by=self.by, field=self.field)
