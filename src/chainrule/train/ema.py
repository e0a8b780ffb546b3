"""A running mean of the weights, which is often better than any of them.

    mean ← mean + (1 - β) (weights - mean),   β = min(memory, (1 + t) / (10 + t))        t updates so far

The first weights are poor: a short memory at the start forgets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from chainrule.autograd import Parameters


class Average:
    """The mean of the values of a flat block over the steps of a training."""

    def __init__(self, parameters: Parameters, memory: float) -> None:
        self.parameters = parameters
        self.memory = memory
        self.mean = parameters.data.copy()
        self.scratch = np.empty_like(self.mean)

    def update(self, step: int) -> None:
        """Take in the weights after `step` steps."""
        weight = 1 - min(self.memory, (1 + step) / (10 + step))
        np.subtract(self.parameters.data, self.mean, out=self.scratch)
        self.scratch *= weight
        self.mean += self.scratch

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the mean for its weights in here."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        values = self.parameters.data.copy()
        self.parameters.data[...] = self.mean
        self.mean[...] = values
        self.parameters.changed()
