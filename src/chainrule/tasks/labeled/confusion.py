"""Which labels a model takes for which, and what follows from it: accuracy, precision, recall and F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.types import IGNORE, Ids

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MISTAKES = 10  # that are listed
WIDEST = 1000  # labels of a matrix for JSON


@dataclass(frozen=True)
class Confusion:
    """How often each label was taken for each other.

    >>> from chainrule.tasks.labeled.confusion import Confusion
    >>> found = Confusion.of([(np.array([0, 1, 1]), np.array([0, 0, 1]))], ("no", "yes"))
    >>> found.counts.tolist(), round(found.accuracy, 3), round(found.f1, 3)
    ([[1, 1], [0, 1]], 0.667, 0.667)
    """

    labels: tuple[str, ...]
    right: Counts
    """(N,) the labels that are right, for each pair of labels that occurs: of thousands of labels few pairs do."""
    given: Counts
    """(N,) those that were given."""
    times: Counts
    """(N,) how often."""

    @classmethod
    def of(cls, answers: Iterable[tuple[Ids, Ids]], labels: Sequence[str]) -> Confusion:
        """Of predictions and targets of the same shape; a target that is IGNORE does not count."""
        C, found = len(labels), [np.empty(0, np.int64)]
        for predicted, targets in answers:
            there = targets != IGNORE
            found.append(targets[there].astype(np.int64) * C + predicted[there])
        pairs, times = np.unique(np.concatenate(found), return_counts=True)
        return cls(tuple(labels), pairs // C, pairs % C, times)

    @property
    def counts(self) -> Counts:
        """(C, C): rows are the labels that are right, columns those that were given."""
        found = np.zeros((len(self.labels), len(self.labels)), np.int64)
        found[self.right, self.given] = self.times
        return found

    @property
    def accuracy(self) -> float:
        """The fraction of answers that are right."""
        return float(self._hits.sum() / max(1, self.times.sum()))

    @property
    def precision(self) -> Numbers:
        """(C,) of the answers with a label the fraction that is right; 0 if it was never given"""
        return self._hits / np.maximum(1, self._sums(self.given))

    @property
    def recall(self) -> Numbers:
        """(C,) of a label the fraction that was found; 0 if it does not occur"""
        return self._hits / np.maximum(1, self._sums(self.right))

    @property
    def each_f1(self) -> Numbers:
        """(C,) the harmonic mean of precision and recall: 2 right / (given + there)"""
        return 2 * self._hits / np.maximum(1, self._both)

    @property
    def f1(self) -> float:
        """The mean over labels that occur or were given, each as important as any other (macro F1)."""
        known = self._both > 0
        return float(self.each_f1[known].mean()) if known.any() else 0.0

    @property
    def _hits(self) -> Numbers:
        """(C,) how often each label is right and was given"""
        return self._sums(self.right, self.right == self.given)

    @property
    def _both(self) -> Numbers:
        """(C,) how often a label was given, and how often it is there"""
        return self._sums(self.given) + self._sums(self.right)

    def _sums(self, labels: Counts, where: Any = slice(None)) -> Numbers:
        """(C,) how often each label is among these"""
        return np.bincount(labels[where], self.times[where], len(self.labels)).astype(np.float64)

    def mistakes(self) -> list[tuple[str, str, int]]:
        """The commonest first: the label that is right, the one that was given, and how often."""
        wrong = np.flatnonzero(self.right != self.given)
        worst = wrong[np.argsort(-self.times[wrong], kind="stable")][:MISTAKES]
        pairs = ((self.labels[self.right[i]], self.labels[self.given[i]], int(self.times[i])) for i in worst)
        return list(pairs)

    def scores(self) -> dict[str, float | None]:
        """What training shows, the score that decides first."""
        return {"accuracy": self.accuracy, "f1": self.f1}

    def details(self) -> dict[str, Any]:
        """Label by label, for JSON; of very many labels without the matrix."""
        there = self._sums(self.right)
        columns = zip(self.labels, self.precision, self.recall, self.each_f1, there, strict=True)
        each = {
            label: {"precision": float(p), "recall": float(r), "f1": float(f), "count": int(n)}
            for label, p, r, f, n in columns
        }
        found = {"labels": each, "mistakes": self.mistakes()}
        return found | ({"confusion": self.counts.tolist()} if len(self.labels) <= WIDEST else {})
