"""Which labels a model takes for which, and what follows from it: accuracy, precision, recall and F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.types import IGNORE, Ids

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Confusion:
    """How often each label was taken for each other.

    >>> from chainrule.tasks.labeled.confusion import Confusion
    >>> found = Confusion.of([(np.array([0, 1, 1]), np.array([0, 0, 1]))], ("no", "yes"))
    >>> found.counts.tolist(), round(found.accuracy, 3), round(found.f1, 3)
    ([[1, 1], [0, 1]], 0.667, 0.667)
    """

    labels: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    """(C, C): rows are the labels that are right, columns those that were given."""

    @classmethod
    def of(cls, answers: Iterable[tuple[Ids, Ids]], labels: Sequence[str]) -> Confusion:
        """Of predictions and targets of the same shape; a target that is IGNORE does not count."""
        C = len(labels)
        counts = np.zeros(C * C, np.int64)
        for predicted, targets in answers:
            there = targets != IGNORE
            counts += np.bincount(targets[there].astype(np.int64) * C + predicted[there], minlength=C * C)
        return cls(tuple(labels), counts.reshape(C, C))

    @property
    def accuracy(self) -> float:
        """The fraction of answers that are right."""
        return float(np.trace(self.counts) / max(1, self.counts.sum()))

    @property
    def precision(self) -> Numbers:
        """(C,) of the answers with a label the fraction that is right; 0 if it was never given"""
        return self._right / np.maximum(1, self.counts.sum(0))

    @property
    def recall(self) -> Numbers:
        """(C,) of a label the fraction that was found; 0 if it does not occur"""
        return self._right / np.maximum(1, self.counts.sum(1))

    @property
    def each_f1(self) -> Numbers:
        """(C,) the harmonic mean of precision and recall: 2 right / (given + there)"""
        return 2 * self._right / np.maximum(1, self._both)

    @property
    def f1(self) -> float:
        """The mean over labels that occur or were given, each as important as any other (macro F1)."""
        known = self._both > 0
        return float(self.each_f1[known].mean()) if known.any() else 0.0

    @property
    def _right(self) -> Numbers:
        return np.diagonal(self.counts).astype(np.float64)

    @property
    def _both(self) -> npt.NDArray[np.int64]:
        """(C,) how often a label was given, and how often it is there"""
        return np.asarray(self.counts.sum(0) + self.counts.sum(1))

    def scores(self) -> dict[str, float | None]:
        """What training shows, the score that decides first."""
        return {"accuracy": self.accuracy, "f1": self.f1}

    def details(self) -> dict[str, Any]:
        """All of it, label by label, for JSON."""
        columns = zip(self.labels, self.precision, self.recall, self.each_f1, self.counts.sum(1), strict=True)
        each = {
            label: {"precision": float(p), "recall": float(r), "f1": float(f), "count": int(n)}
            for label, p, r, f, n in columns
        }
        return {"labels": each, "confusion": self.counts.tolist()}
