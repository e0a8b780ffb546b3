"""What the commands of `chainrule align` share: a base, a file, the directory of the run, and the training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from chainrule.cli.args.options import Argument, Given, Help
from chainrule.cli.args.runs.training import Speaking, settled
from chainrule.errors import ConfigError
from chainrule.train.config import TrainConfig

if TYPE_CHECKING:
    from chainrule.runs import Run
    from chainrule.tasks import Task

BASE = "The model to begin with: a run, one of its checkpoints, or anything that `chainrule import` takes."
PREFERENCES = (
    "Preferences: a .jsonl, .json, .csv or .parquet with prompt, chosen and rejected, texts or lists of messages, or "
    "with instruction, input, chosen and rejected."
)


@dataclass(frozen=True)
class AlignOptions(Speaking):
    """A subclass for each method adds the options of its task."""

    verb: ClassVar[str]
    reads: ClassVar[str] = "the reference reads each pair once"
    """What takes a while before the first step."""

    base: Annotated[Path | None, Argument("BASE"), Help(BASE)] = None
    data: Annotated[Path | None, Argument("FILE"), Help(PREFERENCES)] = None
    out: Path | None = None
    """Directory of the run. Default: runs/METHOD, or the next of runs/METHOD-2, runs/METHOD-3, ... that is free."""
    resume: Path | None = None
    """Resume this run, with its data and settings, from its newest checkpoint; BASE and FILE are left out."""
    config: Path | None = None
    """A TOML file with options, such as the config.toml of a run; flags override it."""
    training: TrainConfig = field(default_factory=TrainConfig)
    given: Given = field(default_factory=Given)
    """The options with a flag or a line in the file, default or not."""

    @classmethod
    def task(cls) -> type[Task]:
        """What is trained on."""
        from chainrule.tasks.registry import ALIGNMENT

        return ALIGNMENT[cls.verb]

    @classmethod
    def by_data(cls) -> dict[str, Any]:
        """The settings that are chosen for the task unless given: what they are, None if the data decide."""
        from chainrule.models.suited import chosen

        return chosen(cls.verb)

    def run(self) -> None:
        from chainrule.cli.render.progress import Progress
        from chainrule.cli.render.training import train

        with Progress("reading") as progress:
            run = self._resumed(self.resume) if self.resume else self._new(progress.turn)
        train(run, self)

    def own(self) -> dict[str, Any]:
        """The options of the task."""
        return {name: getattr(self, name) for name in self.task().options}

    def family(self, start: Any) -> str:
        """The family of the model that is trained."""
        from chainrule.models import describe

        return str(describe(start)["model_type"])

    def _new(self, tell: Callable[[str], None]) -> Run:
        from chainrule.cli.args.config_file import toml
        from chainrule.runs import Run, RunFolder
        from chainrule.runs.warm_start import load_start

        for name in ("base", "data"):
            if getattr(self, name) is None:
                shown = "BASE" if name == "base" else "FILE"
                raise ConfigError(
                    f"align {self.verb}: {shown} is missing (give BASE and FILE, or --resume RUN)"
                )
        if self.out:
            RunFolder(self.out).check_free()
        start, tokenizer = load_start(str(self.base), None)
        kind = self.task()
        data = kind.find(str(self.data))
        config = self.planned(data)
        tell(self.reads)
        run = Run.new(
            self.out or Path("runs", self.verb), data, config, self.family(start), tokenizer, start,
            task=kind.name, numbered=self.out is None, **self.own(),
        )  # fmt: skip
        said = {"base": self.base, "data": self.data} | self.spoken(run) | settled(config)
        run.keep_settings(toml(said))
        return run

    def planned(self, data: Any) -> TrainConfig:
        """The settings that are given, and others that suit the data."""
        from chainrule.models.suited import within

        chosen = self.task().suited(data).training
        if self.training.budget is not None:
            chosen.pop("max_steps", None)
        if "max_steps" in self.given:
            chosen = within(self.training.max_steps, chosen)
        return replace(self.training, **{name: v for name, v in chosen.items() if name not in self.given})

    def _resumed(self, folder: Path) -> Run:
        from chainrule.cli.args.runs.resume import command_for, same_folder, same_settings

        for name in ("base", "data"):
            if getattr(self, name) is not None:
                shown = "BASE" if name == "base" else "FILE"
                said = f"{shown} is {getattr(self, name)}, the run in {folder} has its own (leave it out)"
                raise ConfigError(f"resume: {said}")
        run = self.resumed(folder)
        if type(run.task) is not self.task():
            raise ConfigError(
                f"resume: {folder} is not a run of align {self.verb} (resume with: {command_for(run)})"
            )
        same_folder(self.out, folder)
        same_settings(run, self.said() | vars(self.training), self.given, self.spoken(run), self.say)
        return run

    def resumed(self, folder: Path) -> Run:
        """The run in a folder."""
        from chainrule.runs import Run

        return Run.resume(folder)

    def said(self) -> dict[str, Any]:
        """The options of the task, given or not."""
        return dict(vars(self))

    def spoken(self, run: Run) -> dict[str, Any]:
        """The options of the task of a run, as flags say them."""
        return run.task.facts()
