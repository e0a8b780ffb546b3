"""A stretch of a run: from its start, or where it was resumed, to its end or to where it is stopped."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from chainrule.distributed import world
from chainrule.doctor import Code
from chainrule.io import write_vectors
from chainrule.runs.baseline import tell_baseline
from chainrule.runs.progress import recall
from chainrule.runs.records import environment
from chainrule.tasks.named import facts_of
from chainrule.train.log import Log, Logger, read
from chainrule.train.trainer import Result

if TYPE_CHECKING:
    from rich.console import Console

    from chainrule.runs.run import Run


class Stretch:
    """What surrounds the steps of a run: its directory locked, a log, checkpoints, and a record of what made it.

    Of several ranks the first alone has these.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.log = Logger()
        self.sample = run.sample if world().first else None
        self.left_at: float | None = None
        """The validation loss where it was interrupted, which is not in the log: there it equals one that was not."""
        self.check_there: Callable[[], None] = lambda: None

    @contextmanager
    def open(self, console: Console | None, tell: Callable[[str], None] | None) -> Iterator[None]:
        """In here the run is trained."""
        run, trainer = self.run, self.run.trainer
        if not world().first:
            self._begin()
            yield
            return
        ((unit, per_step),) = self.per_step.items()
        sizes = {"parameters": run.model.count(), "resume_at": trainer.steps}
        with (
            run.files.at_work() as self.check_there,
            nullcontext() if run.finished else self._recorded(),
            Log(run.files.log, unit=unit, per_step=per_step, **sizes, console=console, tell=tell) as log,
        ):
            self.log = log
            self._begin()
            yield
        if log.closed:  # the run is saved; the command may end as others do when their reader is gone
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    @property
    def per_step(self) -> dict[str, int]:
        """How many tokens, texts or pairs a step reads."""
        unit, trainer = self.run.task.counted, self.run.trainer
        return {unit: trainer.step.tokens if unit == "tokens" else trainer.config.batch_size}

    def save(self) -> None:
        """A checkpoint of the run as it is now."""
        self.check_there()
        self.log.keep()  # or a checkpoint could outlive the records of its steps
        self.run.save()

    def end(self, result: Result) -> None:
        """Keep what is known only when the steps are done."""
        if result.interrupted and math.isfinite(result.validation):
            self.left_at = result.validation
        if world().first and not result.interrupted and (table := self.run.task.vectors(self.run.model)):
            write_vectors(self.run.files.vectors, *table)

    def _begin(self) -> None:
        """Before the first step: what can be known already, and a checkpoint to resume from. Later: what was said.

        What all ranks must know, or find together, they find here; the first alone looks around and saves.
        """
        run, trainer, log, first = self.run, self.run.trainer, self.log, world().first
        if trainer.steps and trainer.eval_batches:
            recall(trainer, world().from_first(read(run.files.log) if first else []))
        elif not trainer.steps:
            if run.task.baseline and first:
                tell_baseline(run.task, trainer.config.eval_windows, log)
            if trainer.eval_batches and first:
                found = trainer.examine(fresh=run.from_seed)
                trainer.tell(log, (f for f in found if f.level != "ok" or f.code is Code.FORECAST))
            if run.tuning is not None:
                run.tuning.tell_before(trainer, log)
            run.save()

    def _recorded(self) -> AbstractContextManager[None]:
        """In here the stretch is written down in the environment of the run."""
        run = self.run
        facts = {
            "family": run.family,
            "parameters": run.model.count(),
            "data": facts_of(run.corpus),
            "per_nat": run.task.measures(1.0, run.trainer.eval_batches),
            "per_step": self.per_step,
        }

        def progress() -> tuple[int, bool, float | None]:
            return run.trainer.steps, run.finished, self.left_at

        return environment.recorded(run.folder, facts, progress, self.check_there)
