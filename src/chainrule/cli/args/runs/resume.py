"""`--resume`: what it asks of the other options, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chainrule.cli.args.config_file import read_settings, toml
from chainrule.cli.args.runs.training import TrainOptions, settled
from chainrule.cli.render.show import command_line
from chainrule.columns import CHOSEN, Columns
from chainrule.distributed import world
from chainrule.errors import ConfigError, Setting
from chainrule.files import alone
from chainrule.runs import Run, RunFolder
from chainrule.runs.load import is_tokenizer
from chainrule.text.training.recipe import Recipe

# Settings that may change when a run is resumed: the highest rate, when to look, save and stop, and what changes no
# bit of a result: where the optimizer's state is kept, and whether steps are compiled.
FREE = (
    "lr", "on_nan", "eval_every", "save_every", "sample_every", "keep", "patience", "shard_optimizer", "compile",
)  # fmt: skip


def resumed(asked: TrainOptions, folder: Path) -> Run:
    """The run in a folder, with its data and settings; an option that is given must agree with them or be `FREE`."""
    run = Run.resume(folder)
    if run.family != asked.family:
        raise ConfigError(
            f"resume: {folder} is a run of {run.family}, not of {asked.family} (resume with: {command_for(run)})"
        )
    same_folder(asked.out, folder)
    if asked.init is not None and str(asked.init) != _recorded(folder, "init"):
        own = f" is {asked.init}, the run in {folder} continues with its own weights"
        raise ConfigError("resume: ", Setting("init"), own, " (leave out one of the two)")
    same_data(run, asked.data, asked.columns)
    learned = Recipe.of(asked.tokenizer) is not None and asked.tokenizer == _recorded(folder, "tokenizer")
    if not learned and not is_tokenizer(asked.tokenizer, run.tokenizer):
        other = f" is {asked.tokenizer}, the run has another (leave it out)"
        raise ConfigError("resume: ", Setting("tokenizer"), other)
    said = vars(asked) | vars(asked.sizes) | vars(asked.training)
    same_settings(run, said, asked.given, vars(run.model.config), asked.say)
    return run


def same_settings(
    run: Run,
    said: Mapping[str, Any],
    given: frozenset[str],
    own: Mapping[str, Any],
    say: Callable[[str], None],
) -> None:
    """What is given of the training, or of what is the run's `own`, must agree with it, be `FREE`, or a later end."""
    of_run = dict(own) | vars(run.trainer.config)
    changed = {name: said[name] for name in FREE if name in given and said[name] != of_run[name]}
    agree(said, given, of_run | {"max_steps": said["max_steps"]} | changed)
    if changed:
        run.change(**changed)
    if "max_steps" in given and said["max_steps"] != run.trainer.plan.total:
        run.extend(said["max_steps"])
        say(
            f"new plan: {said['max_steps']:,} steps, with the learning rate of a run of that length "
            "(it is high again where it had fallen)"
        )


def same_data(run: Run, name: str, asked: Columns) -> None:
    """A run continues on its data; of a table on the columns it was begun with."""
    if asked == CHOSEN and name == run.task.default:
        return
    reading = getattr(run.corpus, "reading", None)
    columns = asked.filled(Columns(**reading.columns)) if reading else asked
    if run.task.find(run.corpus.name if name == run.task.default else name, columns) != run.corpus:
        said = f"data is {name}" if asked == CHOSEN else "the columns are others"
        raise ConfigError(f"resume: {said}, in the run {reading or run.corpus.name} (leave it out)")


def _recorded(folder: Path, name: str) -> Any:
    """A setting that a run was started with; None if it was not given."""
    settings = RunFolder(folder).settings
    return read_settings(settings).get(name) if settings.exists() else None


def renew_settings(run: Run) -> None:
    """Update the settings file of a resumed run; a run that was not started by command has none."""
    path, now = run.files.settings, vars(run.trainer.config)
    if not (path.exists() and world().first):
        return
    with alone(run.folder):
        kept = {name: value for name, value in read_settings(path).items() if name not in now}
        run.keep_settings(toml(kept | settled(run.trainer.config)))


def agree(said: Mapping[str, Any], given: frozenset[str], of_run: Mapping[str, Any]) -> None:
    """Settings come from the run; an option that is given, be it the default, must agree with it."""
    for name, value in of_run.items():
        if name in given and said[name] != value:
            had = "none" if value is None else value
            raise ConfigError("resume: ", Setting(name), f" is {said[name]}, in the run {had} (leave it out)")


def same_folder(out: Path | None, folder: Path) -> None:
    """Refuse an --out that is not the directory of the run."""
    if out is not None and out != folder:
        raise ConfigError("resume: ", Setting("out"), f" is {out}, the run is in {folder} (leave it out)")


def command_for(run: Run) -> str:
    """What to type to resume a run."""
    verb = "tune" if run.method is not None else run.task.command.format(family=run.family)
    return command_line(*verb.split(), "--resume", run.folder)


def remedy(run: Run) -> str:
    """How to resume with a smaller learning rate; a run that made no step is deleted."""
    if not run.folder.exists():
        return ""
    return f"; resume from the last checkpoint with: {command_for(run)} --lr {run.trainer.config.lr / 10:g}"


def continuation(run: Run) -> str:
    """From where to where a resumed run goes, or that it is at its end."""
    trainer = run.trainer
    steps, total, budget = trainer.steps, trainer.plan.total, trainer.config.budget
    if run.finished:
        # Patience, or a machine that has become slow, may have ended it before its plan did.
        before = "" if total is None or steps >= total else f" of {total:,} planned"
        more = 2 * max(steps, total or 0)
        return (
            f"the run is finished, at step {steps:,}{before}: it is evaluated again, not trained; "
            f"to train on, plan more steps: {command_for(run)} --max-steps {more}"
        )
    end = f"step {total:,}" if total else f"the end of its {budget:g} seconds"
    return f"continues from step {steps:,} to {end}; learning rate now {trainer.plan.lr(steps):.2g}"
