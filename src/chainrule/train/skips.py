"""Steps that are left out because their loss or gradient is not finite: how many in a row, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from chainrule.doctor import Finding
from chainrule.doctor.explain import broken_update
from chainrule.doctor.nonfinite import broken
from chainrule.errors import Failure, Setting
from chainrule.models import Model
from chainrule.train.config import TrainConfig
from chainrule.train.log import Logger

MOST = 20  # steps in a row that may be left out


class Diverged(Failure):
    """A step that was not taken, or a model that is no use any more, and why."""

    def __init__(self, *message: str, finding: Finding | None = None) -> None:
        super().__init__(*message)
        self.finding = finding


class Skips:
    """The steps left out since the last one that was taken."""

    def __init__(self) -> None:
        self.in_a_row = 0
        self.reason = ""  # of the last one

    def add(self, what: str, finding: Finding, *, stop: bool) -> None:
        """One more; an error if it is the last straw."""
        self.in_a_row += 1
        self.reason = f"{what} (must be finite): {finding.measured}; try: {finding.advice}"
        if stop or self.in_a_row > MOST:
            before = "" if stop else f" after {MOST} such steps in a row"
            raise Diverged(f"train: {self.reason}; the step was not taken{before}", finding=finding)


@contextmanager
def noted(log: Logger, step: int) -> Iterator[None]:
    """Log the finding of a `Diverged` that is raised in here, and raise it again."""
    try:
        yield
    except Diverged as error:
        if error.finding:
            log.note(step, {"finding": error.finding.to_dict()})
        raise


def check_sound(model: Model, config: TrainConfig, step: int, validation: float = 0.0) -> None:
    """Refuse to keep or evaluate a model that an update has broken: its loss and gradient may have been finite."""
    entry = broken(model)
    if entry is None and math.isfinite(validation):
        return
    finding = broken_update(entry, config, step, validation)
    raise Diverged(
        f"train: {finding.measured} (must be finite): try a smaller ",
        *(Setting("lr"), f" than {config.lr:g}, a smaller "),
        *(Setting("weight_decay"), f" than {config.weight_decay:g}; the step is not kept"),
        finding=finding,
    )
