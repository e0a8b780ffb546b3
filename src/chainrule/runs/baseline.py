"""The baseline of a run: a simpler family on the same data, trained in about a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from chainrule import random
from chainrule.distributed.communicator import apart
from chainrule.runs.trainers import trainer_of
from chainrule.tasks.registry import task_of
from chainrule.tasks.setup import Setup
from chainrule.tasks.task import Task
from chainrule.train.config import TrainConfig, defaults
from chainrule.train.log import Logger, score_in_words


def baseline_of(task: Task, limit: int, tell: Callable[[str], None]) -> Mapping[str, float | None]:
    """What the family `task.baseline` reaches at its best step on the `limit` validation examples of the run."""
    family = task.baseline
    kind = task_of(family)
    suited = kind.suited(task.corpus)
    settings = defaults(family)
    assert isinstance(settings, TrainConfig)
    config = replace(settings, **suited.training, eval_windows=limit)
    with random.seeded(config.seed):
        setup = Setup.new(family, task.corpus, None, config, **suited.sizes)
    simple, model, _, held_out = setup
    trainer, found = trainer_of(setup, config), dict[str, Any]()

    def keep_best() -> None:
        if trainer.best_so_far.step == trainer.steps:
            found.update(simple.evaluate(model, held_out))

    with apart():  # the first rank alone trains it
        if trainer.run(_Told(config.max_steps, tell), keep_best).interrupted:
            raise KeyboardInterrupt
    found = found or simple.evaluate(model, held_out)  # no evaluation was the best: its loss is not finite
    return {name: value for name, value in found.items() if value is None or isinstance(value, float)}


def tell_baseline(task: Task, limit: int, log: Logger) -> None:
    """Print what a simpler model reaches on the same validation data, which this one must beat."""
    found = baseline_of(task, limit, log.progress)
    scores = {name: value for name, value in found.items() if name != task.unit}
    said = ", ".join([*map(score_in_words, scores.items()), f"loss {found[task.unit]:.4f}"])
    log.note(0, {"baseline": dict(found)}, f"baseline to beat, {task.baseline}: {said}")


@dataclass
class _Told(Logger):
    """A logger that only tells how far it is."""

    steps: int
    tell: Callable[[str], None]

    def step(self, step: int, loss: float, **_: Any) -> None:
        self.tell(f"baseline: step {step:,} of {self.steps:,}")
