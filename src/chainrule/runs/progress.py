"""How far a trainer is, as a checkpoint keeps it: what is written, how it is restored, and how it goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError, Setting
from chainrule.models import Model
from chainrule.models.microbatch import State
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.load import this_version
from chainrule.train.best import Best
from chainrule.train.plan import Plan
from chainrule.train.trainer import Trainer


def progress_of(trainer: Trainer) -> dict[str, Any]:
    """All but the arrays, for training.json."""
    if trainer.step.by_epoch:
        return {"step": trainer.steps}
    return {
        "step": trainer.steps,
        "seconds": trainer.seconds,
        "total": trainer.plan.total,
        "scale": asdict(trainer.gradient.scale),
        "skipped": trainer.gradient.skips.in_a_row,
        "best": trainer.best_so_far.to_dict(),
    }


def restore(trainer: Trainer, model: Model, saved: Checkpoint, folder: str | Path) -> None:
    """Bring a new trainer, whose `model` has the weights of the checkpoint, to the step it was saved at."""
    training, step = saved.training, trainer.gradient
    trainer.steps = saved.step
    if trainer.step.by_epoch:
        return
    with this_version(folder):
        trainer.seconds = float(training["seconds"])
        trainer.plan = Plan(trainer.config, training["total"])
        step.state = nested(saved.carried, trainer.model)
        trainer.best_so_far = Best.from_dict(training)
        step.scale.load(training.get("scale", {}))
        step.skips.in_a_row = int(training.get("skipped", 0))
    if step.average:  # it began with what is used, the mean; what is trained lies beside it
        model.load(model.state() | dict(saved.trained))
    step.load(saved.optimizer)


def replan(trainer: Trainer, max_steps: int) -> None:
    """Plan a later end than the one that was planned; stopped early, it is patient again."""
    timed = trainer.config.budget is not None  # its number of steps was an estimate
    planned = trainer.steps if timed else trainer.plan.total or trainer.steps
    if max_steps <= planned:
        said = f" is {max_steps}, in the run {planned} (must be larger)"
        raise ConfigError("resume: ", Setting("max_steps"), said)
    trainer.config = replace(trainer.config, max_steps=max_steps, budget=None)
    trainer.plan = Plan(trainer.config)
    trainer.best_so_far.waited = 0
    if trainer.general is not None:
        trainer.general.forgot = False  # until the next evaluation says so again


def recall(trainer: Trainer, records: Iterable[dict[str, Any]]) -> None:
    """Remember what the log of the steps before has said: no finding is printed twice."""
    known = list(records)
    deque(trainer.monitor.recall(known), maxlen=0)
    trainer.bounds.recall(known)


def flat(state: State | None) -> dict[str, Any]:
    """The state that a model carries with a name for each array: layer.part"""
    return {f"{i}.{j}": part for i, layer in enumerate(state or ()) for j, part in enumerate(layer)}


def nested(arrays: Mapping[str, Any], model: Model) -> State | None:
    """The state that `flat` took apart."""
    like = model.initial_state(1)
    if not arrays or like is None:
        return None
    return tuple(tuple(arrays[f"{i}.{j}"] for j, _ in enumerate(layer)) for i, layer in enumerate(like))
