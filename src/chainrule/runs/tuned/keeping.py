"""Remedies against forgetting: what a tuning run is told to keep of what its base could do.

The old task is that of the base's own run, if its data are there, or a text. Its loss is measured before the first step
and at each evaluation; batches of it may be mixed into the training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from chainrule.columns import CHOSEN, Columns
from chainrule.data import BatchSource, Mixture
from chainrule.errors import ConfigError, DataError
from chainrule.models import LanguageModel, Model, describe
from chainrule.models.tuning import Method
from chainrule.models.tuning.parts import parts
from chainrule.runs.warm_start import Start
from chainrule.tasks.named import facts_of
from chainrule.tasks.registry import task_of
from chainrule.tasks.task import Task
from chainrule.text import Tokenizer
from chainrule.train.config import Keeping, TrainConfig
from chainrule.train.general import General, Pull
from chainrule.train.trainer import Trainer

WINDOWS = 256  # of the old task that are measured, at most


class Old(NamedTuple):
    """The data of the old task: where they are found again, and their hash."""

    family: str
    task: str
    data: dict[str, Any]
    """Name, version, hash and columns."""
    whole: bool = False
    """All of it is for evaluation: a file that no part of was trained on."""

    @property
    def kind(self) -> type[Task]:
        return task_of(self.family, self.task)

    def read(self, tokenizer: Tokenizer) -> Task:
        """The task with its data, which must be as they were."""
        found = self.kind.find(self.data["name"], Columns(**self.data.get("columns", {})))
        if found.sha256 != self.data["sha256"]:
            said = f"{self.data['name']}: has changed since it was trained on"
            raise DataError(f"{said} (SHA-256 {found.sha256[:12]}, was {str(self.data['sha256'])[:12]})")
        return self.kind.of(found, tokenizer, eval_only=self.whole)


def old_data(start: Start) -> Old | None:
    """Those of the base's own run; None if it comes without."""
    if "data" not in start.own:
        return None
    found = Old(str(describe(start.model)["model_type"]), start.own.get("task", ""), start.own["data"])
    return found if found.kind.own_loss else None


def text_data(family: str, path: str, *, whole: bool) -> Old:
    """Those of a file, of the task of the family."""
    return Old(family, "", facts_of(task_of(family).find(path, CHOSEN)), whole)


@dataclass
class Kept:
    """What a run keeps, and by which data."""

    settings: Keeping
    general: Old | None = None
    replay: Old | None = None
    before: float | None = None
    told: str = ""
    """Why the old task is not measured, if it is not."""

    @classmethod
    def new(cls, settings: Keeping, start: Start, model: Model, method: Method, config: TrainConfig) -> Kept:
        """For a model that begins with the weights of `start`."""
        if settings.pull and list(parts(model)):
            rule = f"must be 0 for {method.name}: what it adds has no pretrained values"
            raise _refused("pull", settings.pull, rule)
        if settings.tolerance is not None and config.keep == "last":
            raise _refused(
                "keep", config.keep, "must be best with a tolerance: the checkpoint before is used"
            )
        family = str(describe(model)["model_type"])
        kept, own = cls(settings), old_data(start)
        if settings.general is not None:
            kept.general = text_data(family, settings.general, whole=True)
        elif type(model) is type(start.model):
            kept.general = own
        if settings.share:
            if not isinstance(model, LanguageModel):
                raise _refused("replay_share", settings.share, "must be 0: only language models mix texts")
            kept.replay = own if settings.replay is None else text_data(family, settings.replay, whole=False)
            if kept.replay is None or kept.replay.task:
                raise _refused("replay_share", settings.share, "needs a text: give --replay FILE")
        if settings.tolerance is not None and kept.general is None:
            raise _refused("tolerance", settings.tolerance, "needs an old task: give --general FILE")
        return kept

    def measure_before(self, base: Model, model: Model, tokenizer: Tokenizer, config: TrainConfig) -> None:
        """The loss of the base on the old task, on the batches on which the tuned model will be measured."""
        if self.general is None:
            self.told = "its data are not known (--general FILE to measure it)"
            return
        try:
            batches = self._batches(model, tokenizer, config)
        except (DataError, OSError) as error:
            if self.settings.general is not None or self.settings.tolerance is not None:
                raise
            self.general, self.told = None, str(error)
            return
        with base.answering():
            self.before = base.mean_loss(batches)

    def _batches(self, model: Model, tokenizer: Tokenizer, config: TrainConfig) -> Any:
        assert self.general is not None
        task = self.general.read(tokenizer).fitted(model)
        return task.eval_batches(model, batch_size=config.batch_size, limit=min(WINDOWS, config.eval_windows))

    def attach(self, trainer: Trainer, model: Model, tokenizer: Tokenizer, reference: Any) -> None:
        """Let a trainer measure, mix and pull as it was told; `reference()` gives the pretrained weights."""
        config = trainer.config
        if self.general is not None and self.before is not None:
            batches = self._batches(model, tokenizer, config)
            trainer.general = General(
                self.general.data["name"], model, batches, self.before, self.settings.tolerance
            )
        if self.settings.pull:
            trainer.gradient.pull = Pull(dict(model.named_parameters()), reference(), self.settings.pull)

    def mixed(self, task: Task, model: Model, batches: BatchSource, config: TrainConfig) -> BatchSource:
        """The batches of a task, with rows of the old text among them."""
        share = self.settings.share
        if not share or self.replay is None:
            return batches
        old = self.replay.read(task.tokenizer)
        old = replace(old, window=getattr(task, "window", None))  # type: ignore[type-var]
        rows = {
            name: part.batches(model, batch_size=1, seed=config.seed)
            for name, part in (("task", task), ("old", old))
        }
        return Mixture(rows, {"task": 1 - share, "old": share}, draws=config.batch_size, seed=config.seed)  # type: ignore[arg-type]

    def restore(self, general: General | None, saved: Mapping[str, Any]) -> None:
        """What was measured before a run was stopped."""
        if general is not None:
            general.last, general.forgot = saved.get("last"), bool(saved.get("forgot"))

    def to_dict(self, general: General | None) -> dict[str, Any]:
        """For training.json."""
        progress = {} if general is None else {"last": general.last, "forgot": general.forgot}
        olds = {
            name: old and old._asdict() for name, old in (("general", self.general), ("replay", self.replay))
        }
        return {"settings": asdict(self.settings), "before": self.before} | olds | progress

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Kept:
        general, replay = (Old(**saved[name]) if saved[name] else None for name in ("general", "replay"))
        return cls(Keeping(**saved["settings"]), general, replay, saved["before"])


def _refused(name: str, value: Any, rule: str) -> ConfigError:
    return ConfigError.of("tune", {name: value}, rule)
