"""What several tasks measure: the fraction that is right, and of how much of the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from chainrule.types import IGNORE, Ids


class Share(NamedTuple):
    """How much of the evaluation data a loss is of."""

    used: int
    total: int
    unit: str

    def __str__(self) -> str:
        """512 of 1,742 windows; all 60 windows"""
        return (
            f"{self.used:,} of {self.total:,} {self.unit}"
            if self.partial
            else f"all {self.used:,} {self.unit}"
        )

    @property
    def partial(self) -> bool:
        return self.used < self.total


def accuracy(answers: Iterable[tuple[Ids, Ids]]) -> float:
    """The fraction of targets, without those to ignore, that the predictions of the same shape agree with."""
    right = total = 0
    for predicted, targets in answers:
        counts = targets != IGNORE
        right += int(np.count_nonzero((predicted == targets) & counts))
        total += int(np.count_nonzero(counts))
    return right / max(1, total)
