"""The interface of every kind of batches."""

from __future__ import annotations

from typing import Any

from chainrule.types import Ids


class BatchSource:
    """A batch for every step: a pure function of its number, so that nothing need be saved to resume."""

    @property
    def tokens(self) -> int:
        """Mean number of targets per batch."""
        raise NotImplementedError

    def batch(self, step: int) -> tuple[Any, Ids]:
        """Inputs of B rows, ids (B, T) or a named tuple of arrays, and targets, IGNORE where one does not count"""
        raise NotImplementedError

    def begins(self, step: int) -> bool:
        """Whether the rows of this step are new texts; if not, each continues the same row of the step before."""
        return True
