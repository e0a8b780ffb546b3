"""What a part of the load test found: a table, and what must hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import markdown


@dataclass(frozen=True)
class Setting:
    """What is measured, and for how long."""

    model: Path
    """A directory of Hugging Face's."""
    name: str
    """Of its sizes."""
    weights: str
    quick: bool
    minutes: float
    """Of steady load."""

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--weights", self.weights)


class Check(NamedTuple):
    """Something that must hold."""

    rule: str
    found: str
    holds: bool


@dataclass
class Part:
    """A table and its checks."""

    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def check(self, rule: str, found: object, holds: bool) -> None:
        self.checks.append(Check(rule, str(found), holds))

    def text(self) -> str:
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"\n## {self.title}\n\n{markdown(self.header, self.rows)}\n{notes}"


def checked(parts: Sequence[Part]) -> str:
    """All checks as one table."""
    rows = [
        [re.split("[,:]", part.title)[0], check.rule, check.found, "yes" if check.holds else "**NO**"]
        for part in parts
        for check in part.checks
    ]
    header = ["part", "must be", "found", "holds"]
    return f"\n## What must hold\n\n{markdown(header, rows)}\n" if rows else ""
