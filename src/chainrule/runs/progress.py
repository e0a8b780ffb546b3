"""How far a trainer is, as a checkpoint keeps it: what is written, and how it is restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

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


def flat(state: State | None) -> dict[str, Any]:
    """The state that a model carries with a name for each array: layer.part"""
    return {f"{i}.{j}": part for i, layer in enumerate(state or ()) for j, part in enumerate(layer)}


def nested(arrays: Mapping[str, Any], model: Model) -> State | None:
    """The state that `flat` took apart."""
    like = model.initial_state(1)
    if not arrays or like is None:
        return None
    return tuple(tuple(arrays[f"{i}.{j}"] for j, _ in enumerate(layer)) for i, layer in enumerate(like))
