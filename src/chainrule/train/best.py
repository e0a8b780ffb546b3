"""The best evaluation of a training so far: it decides which checkpoint is used, and when patience ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Best:
    """The step with the best evaluation, and how many evaluations have come since.

    A score, such as the accuracy of a classifier, is better if it is higher; between equal scores, and without any, the
    lower loss is better.

    >>> from chainrule.train.best import Best
    >>> best = Best()
    >>> [best.update(step, loss) for step, loss in enumerate([3.0, 2.0, 2.5])], best.step, best.waited
    ([True, True, False], 1, 1)
    """

    step: int = -1
    loss: float = math.inf
    score: float | None = None
    waited: int = 0

    def update(self, step: int, loss: float, score: float | None = None) -> bool:
        """Take in the evaluation of a step; True if it is a new best. NaN is no improvement."""
        better = (score or 0.0, -loss) > (self.score or 0.0, -self.loss)
        if better:
            self.step, self.loss, self.score, self.waited = step, loss, score, 0
        else:
            self.waited += 1
        return better

    @property
    def known(self) -> tuple[int, float] | None:
        """The step and its loss; None before the first evaluation."""
        return None if self.step < 0 else (self.step, self.loss)

    def to_dict(self) -> dict[str, Any] | None:
        """For a checkpoint; None before the first evaluation."""
        return asdict(self) if self.known else None

    @classmethod
    def from_dict(cls, training: Mapping[str, Any]) -> Best:
        """From the `training.json` of a checkpoint; versions without `best` knew it only while they had patience."""
        if found := training.get("best"):
            score = found.get("score")
            return cls(
                int(found["step"]),
                float(found["loss"]),
                None if score is None else float(score),
                int(found["waited"]),
            )
        old = training.get("stopping")
        return cls(old["best_step"], old["best"], None, old["waited"]) if old else cls()
