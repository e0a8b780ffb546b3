"""`chainrule train FAMILY`: one command per family of models, its flags the fields of the family's config."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from chainrule.cli.fields import size_fields, sizes_of
from chainrule.cli.new_run import made, new_run
from chainrule.cli.parse import flags, options
from chainrule.cli.progress import Progress
from chainrule.cli.resuming import command_for, going_on, remedy, renew_settings, resumed
from chainrule.cli.settings import as_flags, from_file, named_file
from chainrule.cli.show import bits, command_line, size, steps
from chainrule.cli.train_options import Training, TrainOptions
from chainrule.cli.trials import find_lr, learn_one_batch
from chainrule.cli.wording import near
from chainrule.data import available
from chainrule.errors import ConfigError
from chainrule.models import family as family_of
from chainrule.models.registry import KNOWN
from chainrule.runs import Run
from chainrule.tasks.registry import task_of
from chainrule.train import Result
from chainrule.train.config import defaults
from chainrule.train.skips import NotFinite

# The families that have a command, in the order they are named to people.
COMMON = [name for name in KNOWN if name != "bert-embedder"]

CHARACTERS = "char: each character is a token; or the path of a tokenizer's file. Default: char, or that of the shards."
WORD_PIECES = (
    "The path of a tokenizer's file, which must have [CLS], [SEP], [MASK] and [PAD]. Default: word pieces that are "
    "learnt from the data, or that of the shards."
)


@dataclass(frozen=True)
class Train(TrainOptions):
    """What the commands share; `command` adds the sizes of a family."""

    def run(self) -> None:
        if self.print_config:
            print(self.settings(), end="")
            return
        if self.overfit or self.find_lr:
            self._try()
            return
        with Progress("reading"):
            run = resumed(self, self.resume) if self.resume else new_run(self)
        self.say(f"{size(run.model)}, {run.task.amount()}; run {run.folder}")
        if self.resume:
            renew_settings(run)
            self.say(going_on(run))
        try:
            result = run.train(Console(stderr=self.json, highlight=False))
        except NotFinite as error:
            raise NotFinite(f"{error}{remedy(run)}") from error
        if self.json:
            print(json.dumps(summary(run, result)))
        else:
            print(f"validation loss {bits(run, result.validation)} after {steps(result.steps)}")
            if result.best:
                step, loss = result.best
                print(f"best at step {step:,}, {bits(run, loss)}: sample, eval and export take that one")
        if result.interrupted:
            self.say(
                f"interrupted after step {result.steps:,}, which is saved; go on with: {command_for(run)}"
            )
            raise SystemExit(130)
        if not self.json:
            use, verb = ("let it write with", "sample") if run.task.writes else ("evaluate it with", "eval")
            print(f"{use}: {command_line()} {verb} {run.folder}")

    def _try(self) -> None:
        """The trials that were asked for."""
        with Progress("reading"):
            run = resumed(self, self.resume) if self.resume else made(self, Run.draft)
        if self.find_lr:
            find_lr(run, as_json=self.json)
        if self.overfit:
            learn_one_batch(run, as_json=self.json)


def summary(run: Run, result: Result) -> dict[str, Any]:
    """A run in numbers, for machines; losses are of the validation text, the best one in the same unit as the last."""
    best = run.trainer.monitor.best
    return (
        {
            "run": str(run.folder),
            "model": run.family,
            "parameters": run.model.count(),
            "steps": result.steps,
            "seconds": round(result.seconds, 3),
            run.task.unit: result.validation,
        }
        | run.task.measures(result.validation, run.trainer.eval_batches)
        | ({"best_step": best[0], "best_loss": best[1]} if best else {})
        | {"interrupted": result.interrupted}
    )


def command(family: str, words: Sequence[str] = ()) -> type[Train]:
    """The command of a family: `Train` with the fields of its config but the vocabulary, which the data decide.

    `words` are those it is called with: a flag that says the default is known from no flag at all. Without a family
    it is gpt, but a first word that is no data either was meant to be one.
    """
    if not family:
        refuse_family(words[0] if words else "")
        family = "gpt"
    config = family_of(family).config
    sizes = size_fields(config, sizes_of(family))
    path, kind = named_file(words), task_of(family)
    file = from_file(path, family)
    data: Any = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA", help=kind.about)]
    sizes.append(("data", data, field(default=file.pop("data", kind.default))))
    sizes.append(("training", Training, field(default_factory=partial(defaults, family))))
    tokens = CHARACTERS if not kind.wordpiece else WORD_PIECES
    sizes.append(("tokenizer", Annotated[str | None, tyro.conf.arg(help=tokens)], field(default=None)))
    about_it = (
        f"Train a model of the family {family}. Other families: "
        f"{', '.join(name for name in COMMON if name != family)}, word2vec, each with options of its own.\n\n"
        f"Example: chainrule train {family} {kind.example} --max-steps 5000 --out runs/mine"
    )
    shared: dict[str, Any] = {"family": family, "__doc__": about_it}
    new: Any = make_dataclass("Command", sizes, bases=(Train,), namespace=shared, frozen=True)
    new.before = tuple(as_flags(path, file, options(new)))
    new.given = flags([*new.before, *words])
    return new


def refuse_family(word: str) -> None:
    """`train lstmm`: neither a family nor, by its looks, a file, nor a corpus."""
    corpora = available()
    if not re.fullmatch(r"\w[\w-]*", word) or word in corpora or Path(word).exists():
        return
    families = [*COMMON, "word2vec"]
    hint = near(word, [*families, *corpora])
    raise ConfigError(
        f"train {word!r}: no such family, corpus or file (families are {', '.join(families)}"
        f"{f'; {hint}' if hint else '; chainrule data list names the corpora'})"
    )
