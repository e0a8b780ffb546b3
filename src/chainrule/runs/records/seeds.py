"""Runs that differ only in their seed: where they are, and what they reach on average.

A directory of seeds holds ordinary runs, `seed-0`, `seed-1`, ...; each can be resumed, evaluated and replayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainrule.runs.folder import RunFolder
from chainrule.runs.records.history import History

PREFIX = "seed-"
OWN = ("seed", "data")  # settings of a run alone; the data are known by their hash


@dataclass(frozen=True)
class Spread:
    """A mean over runs, and its standard error."""

    mean: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The standard error is that of the mean: s/√n, with s² = Σ (x - mean)²/(n - 1)

        >>> from chainrule.runs.records.seeds import Spread
        >>> str(Spread.of([1.0, 2.0, 3.0]))
        '2.0000 ± 0.5774'
        """
        n = len(values)
        mean = math.fsum(values) / n
        variance = math.fsum((x - mean) ** 2 for x in values) / (n - 1) if n > 1 else math.nan
        return cls(mean, math.sqrt(variance / n), n)

    def __format__(self, form: str) -> str:
        """Both numbers in the same form; a single value has no error"""
        form = form or ".4f"
        mean = format(self.mean, form)
        return f"{mean} ± {format(self.error, form)}" if self.count > 1 else mean

    def __str__(self) -> str:
        return format(self, ".4f")


def folder_of(parent: Path, seed: int) -> Path:
    """Where the run of a seed is."""
    return parent / f"{PREFIX}{seed}"


def folders(parent: Path) -> list[Path]:
    """The runs of a directory of seeds, by their seeds; none if it is something else."""
    if RunFolder(parent).log.exists():
        return []
    found = [path for path in parent.glob(f"{PREFIX}*") if path.name[len(PREFIX) :].isdecimal()]
    return sorted((p for p in found if RunFolder(p).log.exists()), key=seed_of)


def seed_of(folder: Path) -> int:
    """By the name of the directory."""
    return int(folder.name[len(PREFIX) :])


def results(history: History) -> dict[str, float]:
    """What a run reached: its last and its best validation loss, and the scores where they were best."""
    last = [loss for _, loss in history.series("validation")][-1:]
    found: dict[str, float | None] = {"validation": last[0] if last else None}
    found |= {"best_validation": history.best[1] if history.best else None}
    found |= {"bits_per_byte": history.bits_per_byte} | history.scores
    return {name: value for name, value in found.items() if value is not None}


def together(histories: Sequence[History]) -> dict[str, Spread]:
    """The results that all of these runs have, as means."""
    each = [results(history) for history in histories]
    names = [name for name in each[0] if all(name in one for one in each)] if each else []
    return {name: Spread.of([one[name] for one in each]) for name in names}


def alike(histories: Iterable[History]) -> list[list[History]]:
    """Runs in groups whose settings and data are the same but for the seed."""
    groups: dict[Any, list[History]] = {}
    for history in histories:
        settings = {name: repr(value) for name, value in history.settings.items() if name not in OWN}
        key = (history.family, history.machine.get("data"), *sorted(settings.items()))
        groups.setdefault(key, []).append(history)
    return list(groups.values())
