"""A run of `chainrule tune`, new or resumed, as the options ask for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from chainrule.cli.args.config_file import toml
from chainrule.cli.args.runs.new import in_words
from chainrule.cli.args.runs.resume import command_for, same_data, same_folder, same_settings
from chainrule.cli.args.runs.training import in_toml, settled
from chainrule.distributed import world
from chainrule.errors import ConfigError
from chainrule.machine import memory
from chainrule.models.suited import TUNING_RATES, rate_in_words, tuning_warning, within
from chainrule.models.tuning import Full, Method
from chainrule.runs import Run, RunFolder
from chainrule.runs.warm_start import Start
from chainrule.tasks.memory import whole_bytes
from chainrule.tasks.registry import task_of
from chainrule.tasks.task import Task
from chainrule.tasks.tuning import tuning_task
from chainrule.train.config import TrainConfig


def new_run(asked: Any) -> Run:
    """The run in its directory, with its settings beside it; what is chosen for it is said."""
    for name in ("base", "data"):
        if not getattr(asked, name):
            raise ConfigError(
                f"tune: {name.upper()} is missing (say chainrule tune BASE DATA, or --resume RUN)"
            )
    if asked.out and world().first:
        RunFolder(asked.out).check_free()  # before the base is read, which takes a while
    start = Start.open(asked.base)
    family, task = tuning_task(start.model, asked.data, asked.task, asked.columns)
    method = _method(asked, start)
    kind = task_of(family, task)
    data = kind.find(asked.data, asked.columns)
    training = _training(asked, start, kind, data, method)
    run = Run.new(
        asked.out or Path("runs", method.name),
        data,
        training,
        family,
        None,
        start,
        task=task,
        method=method,
        keeping=asked.keeping,
        columns=asked.columns,
        numbered=asked.out is None,
    )
    _say_sizes(asked, run, run.method or method)
    if run.tuning and run.tuning.kept.told:
        asked.say(f"the old task is not measured: {run.tuning.kept.told}")
    _say_rate(asked, training.lr, start, method)
    run.keep_settings(toml(_record(asked, run, method)))
    return run


def _training(asked: Any, start: Start, kind: type[Task], data: Any, method: Method) -> TrainConfig:
    """The settings as given; the rest suits the data, with the rate of the method beside that of the pretraining."""
    suited = kind.suited(data, start=start.model, tokenizer=start.tokenizer)
    usual = {name: getattr(asked.training, name) for name in ("warmup", "eval_every")}
    chosen = usual | suited.training | {"lr": start.lr * TUNING_RATES[method.name]}
    if "max_steps" in asked.given:
        chosen = within(asked.training.max_steps, chosen)
    chosen = {name: value for name, value in chosen.items() if name not in asked.given}
    if asked.training.budget is not None:
        chosen.pop("max_steps", None)
    if suited.training:
        asked.say(f"chosen for {suited.texts:,} examples to train on: {in_words(chosen)}")
    return replace(asked.training, **chosen)


def _method(asked: Any, start: Start) -> Method:
    text = getattr(asked, "init_text", "")
    if not text:
        return asked.settings
    ids = start.tokenizer.encode(text)
    return replace(asked.settings, ids=tuple(int(id) for id in ids))


def _say_sizes(asked: Any, run: Run, method: Method) -> None:
    """What learns, and what this takes beside a training in which everything learns."""
    learning, whole = run.model.count(trainable=True), run.model.count()
    share = f"{100 * learning / whole:.3g} %"
    asked.say(f"{method.name}: {method.about}: {learning:,} of {whole:,} parameters learn ({share})")
    window = run.task.facts().get("window")
    needed = [whole_bytes(run.model, run.trainer.config, window, each) / 2**20 for each in (method, Full())]
    there = f"this machine has {memory() / 2**30:.0f} GiB"
    asked.say(f"memory: about {needed[0]:,.0f} MiB, {needed[1]:,.0f} with all weights learning; {there}")


def _say_rate(asked: Any, lr: float, start: Start, method: Method) -> None:
    if said := tuning_warning(lr, start.lr, method.name):
        asked.say(f"warning: {said}")
    elif "lr" not in asked.given:
        asked.say(f"lr is {lr:g}, for {method.name} {rate_in_words(method.name)} (--lr for another)")


def _record(asked: Any, run: Run, method: Method) -> dict[str, Any]:
    """The settings of a run that has begun."""
    reading = getattr(run.corpus, "reading", None)
    own = {"base": asked.base, "data": asked.data, "task": asked.task or None} | method.to_dict()
    own |= in_toml({name: value for name, value in own.items() if isinstance(value, tuple)})
    own |= vars(asked.keeping)
    return own | (in_toml(reading.columns) if reading else {}) | settled(run.trainer.config)


def resumed(asked: Any, folder: Path) -> Run:
    """The run in a folder, with its base, data and settings; an option that is given must agree or be `FREE`."""
    run = Run.resume(folder)
    if run.method is None:
        raise ConfigError(f"tune: {folder} was not tuned by a method (resume with: {command_for(run)})")
    same_folder(asked.out, folder)
    base = run.tuning.base if run.tuning else None
    if asked.base and base and Path(asked.base).resolve() != base.path:
        said = f"tune: BASE is {asked.base}, in the run {base.path} (leave it out)"
        raise ConfigError(said)
    if asked.data:
        same_data(run, asked.data, asked.columns)
    said = {"method": asked.method} | vars(asked.settings) | vars(asked.training)
    same_settings(run, said, asked.given, run.method.to_dict(), asked.say)
    return run
