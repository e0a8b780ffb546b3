"""How a run tunes a base: by which method, what it keeps of it on disk, and what against forgetting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainrule.data import BatchSource
from chainrule.io import peft
from chainrule.io.hf import pretrained
from chainrule.models import Model, describe
from chainrule.models.tuning import Method, method_of
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.tuned.adapter import description, own_arrays
from chainrule.runs.tuned.base import Base
from chainrule.runs.tuned.keeping import Kept
from chainrule.runs.warm_start import Start
from chainrule.tasks.task import Task
from chainrule.text import Tokenizer
from chainrule.train.config import Keeping, TrainConfig
from chainrule.train.log import Logger
from chainrule.train.trainer import Trainer


@dataclass
class Tuning:
    """Of a run that has a method."""

    method: Method
    kept: Kept
    base: Base | None = None
    """What was tuned, if the run holds the adapter alone."""
    own: tuple[str, ...] = ()
    """The names of the arrays that are then not those of the base."""

    @classmethod
    def new(
        cls, method: Method, start: Start, keeping: Keeping, task: Task, model: Model, config: TrainConfig
    ) -> Tuning:
        """Of a model that has begun with the weights of `start`."""
        kept = Kept.new(keeping, start, model, method, config)
        kept.measure_before(start.model, model, task.tokenizer, config)
        if not method.alone:
            return cls(method, kept)
        return cls(method, kept, Base.of(start.path, start.model), tuple(own_arrays(model, start.model)))

    @classmethod
    def restored(cls, saved: Checkpoint, folder: Path) -> Tuning | None:
        """As a checkpoint of the run in `folder` has it; None if it has none."""
        if "method" not in saved.training:
            return None
        method, kept = method_of(saved.training["method"]), Kept.from_dict(saved.training["keeping"])
        if not saved.adapter_config:
            return cls(method, kept)
        return cls(method, kept, Base.named(saved.adapter_config, folder), tuple(saved.training["own"]))

    def begin(self, trainer: Trainer, task: Task, model: Model, first: Callable[[], dict[str, Any]]) -> None:
        """Let a trainer do what is to be done against forgetting; `first()` are the weights it began with."""
        trainer.batches = self.mixed(task, model, trainer.batches, trainer.config)
        self.kept.attach(trainer, model, task.tokenizer, first)

    def mixed(self, task: Task, model: Model, batches: BatchSource, config: TrainConfig) -> BatchSource:
        """The batches, with what is replayed among them."""
        return self.kept.mixed(task, model, batches, config)

    def tell_before(self, trainer: Trainer, log: Logger) -> None:
        """Note what the base could do; with a tolerance its weights count as the best as long as no others do."""
        if (general := trainer.general) is None:
            return
        said = f"old task: loss {general.before:.4f} before tuning, on {general.name}"
        log.note(0, {"general": general.before}, said)
        if general.tolerance is not None:
            trainer.best_so_far.update(0, trainer.evaluate())

    def facts(self, trainer: Trainer) -> dict[str, Any]:
        """For training.json."""
        own = {"own": self.own} if self.base else {}
        return {"method": self.method.to_dict(), "keeping": self.kept.to_dict(trainer.general)} | own

    def arrays(self, model: Model) -> dict[str, Any]:
        """Copies of the weights that are saved."""
        found = model.arrays()
        return {name: found[name].copy() for name in (self.own if self.base else found)}

    def parts(self, model: Model, tokenizer: Tokenizer, folder: Path) -> dict[str, Any] | None:
        """The model and the tokenizer by the fields of a checkpoint; None if it is saved as any other."""
        if self.base is None:
            return None
        files = vars(pretrained.parts(model, tokenizer, {}))
        arrays, about = peft.to_files(model, self.method, self.arrays(model), str(self.base.path))
        about |= description(model, self.method, self.base, folder)
        adapter = {"adapter_model": arrays, "adapter_config": about}
        return files | {"model": {}, "config": describe(model)} | adapter
