"""The settings of the ladder; what a kind of model reached on it, with its interval, and all of them as a table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.runs.records.seeds import Spread

# 97.5 % points of Student's t for 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


@dataclass(frozen=True)
class LadderConfig:
    """What the models of the ladder have in common."""

    match: Literal["parameters", "compute"] = "parameters"
    """What is equal for all networks: parameters and updates, or multiply-adds of training."""
    params: int = 100_000
    """Parameters of each network, at most; the nearest its family allows."""
    steps: int = 2000
    """Updates of each network; at equal compute, of the GPT."""
    batch_size: int = 16
    """Windows of 64 tokens per update."""
    seeds: int = 3
    """Runs of each network, each with other initial weights and another order of batches."""
    order: int = 5
    """Order of the longest counted n-gram."""

    def __post_init__(self) -> None:
        check = Check("ladder", self)
        check.at_least(1, "params", "steps", "batch_size", "seeds")
        check.require(self.order >= 3, "order", rule="must be at least 3: 1 and 2 are rungs already")


@dataclass(frozen=True)
class Rung:
    """One line of the table: a kind of model and what it reached."""

    title: str
    parameters: int  # of a counted model: the counts it keeps
    updates: int
    seconds: float  # of training, for all seeds
    bits_per_byte: tuple[float, ...]  # one for each seed

    @property
    def mean(self) -> float:
        return statistics.fmean(self.bits_per_byte)

    @property
    def reached(self) -> Spread:
        """The mean over seeds with its standard error"""
        from chainrule.runs.records.seeds import (
            Spread,  # the settings above are read without the rooms that runs need
        )

        return Spread.of(self.bits_per_byte)

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for a single value"""
        return self.reached.error if len(self.bits_per_byte) > 1 else None

    @property
    def interval(self) -> float | None:
        """Half the width of the 95 % interval of the mean (Student's t); None for a single value."""
        n = len(self.bits_per_byte)
        if n < 2:
            return None
        return STUDENT[min(n, len(STUDENT) + 1) - 2] * statistics.stdev(self.bits_per_byte) / math.sqrt(n)


def table(rungs: Sequence[Rung]) -> str:
    """A Markdown table of the rungs."""
    lines = [
        "| model | parameters | updates | bits per byte | 95 % interval | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for rung in rungs:
        interval = "–" if rung.interval is None else f"± {rung.interval:.3f}"
        lines.append(
            f"| {rung.title} | {rung.parameters:,} | {rung.updates:,} | {rung.reached:.3f} | {interval} "
            f"| {rung.seconds:.1f} |"
        )
    return "\n".join(lines) + "\n"
