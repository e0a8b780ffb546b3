"""The 520 numbered requirements of the seed documents, and those declared out of scope."""

from __future__ import annotations

import csv
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Requirement(NamedTuple):
    id: str  # R-001 .. R-520
    area: str  # A .. Z, AA .. AD
    title: str  # of the area
    kind: str  # F behaviour, X experiment, V figure, P practice, O optional
    statement: str
    check: str  # what shows it; a name in `code font` is a vector of vectors.json


@cache
def requirements() -> dict[str, Requirement]:
    with (HERE / "requirements.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["id"]: Requirement(**row) for row in rows}


@cache
def out_of_scope() -> dict[str, str]:
    """Reason by requirement id."""
    return tomllib.loads((HERE / "out_of_scope.toml").read_text(encoding="utf-8"))
