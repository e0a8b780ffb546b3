"""`chainrule train FAMILY`: one command per family of models, its flags the fields of the family's config."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from chainrule.cli.args.families import DATA, NAMES, TEXT, decided
from chainrule.cli.args.options import Argument, Help, Without
from chainrule.cli.args.training import TrainOptions
from chainrule.errors import ConfigError
from chainrule.models.registry import ENCODERS, KNOWN
from chainrule.suggest import did_you_mean
from chainrule.train.config import TrainConfig, defaults

if TYPE_CHECKING:
    from chainrule.runs import Run

# What a run needs is imported when there is one: the help is there without it.

TOKENS = {  # the help of --tokenizer, by what a family reads
    "characters": "char: each character is a token; or the path of a tokenizer's file. Default: char, or that of the "
    "shards.",
    "word pieces": "The path of a tokenizer's file, which must have [CLS], [SEP], [MASK] and [PAD]. Default: word "
    "pieces that are learned from the data, or the tokenizer of the shards.",
    "words": "The path of a tokenizer's file. Default: the words of the data in lower case.",
}

VECTORS = (
    "Vectors of words, a run of word2vec or a text file, that the tokens begin with which are such words; as many "
    "numbers as the embeddings are wide."
)


@dataclass(frozen=True)
class Train(TrainOptions):
    """What the commands share; `command` adds the sizes of a family."""

    def run(self) -> None:
        if self.print_config:
            print(self.settings(), end="")
        elif self.overfit or self.find_lr:
            self._try()
        else:
            self._train()

    def _train(self) -> None:
        from rich.console import Console

        from chainrule.cli.args.resume import command_for, continuation, remedy, renew_settings
        from chainrule.cli.render.result import in_words, next_command, summary
        from chainrule.cli.render.show import size
        from chainrule.train.skips import NotFinite

        run = self._run()
        self.say(f"{size(run.model)}, {run.task.amount()}; run {run.folder}")
        if self.resume:
            renew_settings(run)
            self.say(continuation(run))
        try:
            result = run.train(Console(stderr=self.json, highlight=False))
        except NotFinite as error:
            raise NotFinite(*error.args, remedy(run)) from error
        print(json.dumps(summary(run, result)) if self.json else "\n".join(in_words(run, result)))
        if result.interrupted:
            said = f"interrupted after step {result.steps:,}, which is saved"
            self.say(f"{said}; resume with: {command_for(run)}")
            raise SystemExit(130)
        if not self.json:
            print(next_command(run))

    def _run(self, *, draft: bool = False) -> Run:
        """The run that is resumed, or a new one; a draft is not written."""
        from chainrule.cli.args.new_run import new_run
        from chainrule.cli.args.resume import resumed
        from chainrule.cli.render.progress import Progress

        with Progress("reading"):
            return resumed(self, self.resume) if self.resume else new_run(self, draft=draft)

    def _try(self) -> None:
        """The trials that were asked for."""
        from chainrule.cli.render.trials import find_lr, overfit_one_batch

        run = self._run(draft=True)
        if self.find_lr:
            find_lr(run, as_json=self.json)
        if self.overfit:
            overfit_one_batch(run, as_json=self.json)


def command(family: str, words: Sequence[str] = ()) -> type[Train]:
    """The command of a family: `Train` with the sizes of its config, but for those that the data decide.

    Without a family it is gpt, but a first word that is not data either was meant to be one.
    """
    if not family:
        refuse_family(words[0] if words else "")
        family = "gpt"
    config, kind = KNOWN[family].config, DATA.get(family, TEXT)
    others = ", ".join(name for name in NAMES if name != family)
    about = (
        f"Train a model of the family {family}. Other families: {others}, word2vec, each with options of its own.\n\n"
        f"Example: chainrule train {family} {kind.example} --max-steps 5000 --out runs/mine"
    )
    tokens = TOKENS[KNOWN[family].reads]
    more: list[Any] = [
        ("data", Annotated[str, Argument("DATA"), Help(kind.about)], field(default=kind.default)),
        ("tokenizer", Annotated[str | None, Help(tokens)], field(default=None)),
        ("sizes", Annotated[config, Without(decided(family))], field(default_factory=config)),
        ("training", TrainConfig, field(default_factory=partial(defaults, family))),
    ]
    if family in ENCODERS:
        more.append(("init_embeddings", Annotated[Path | None, Help(VECTORS)], field(default=None)))
    shared: dict[str, Any] = {"family": family, "__doc__": about}
    return make_dataclass("Command", more, bases=(Train,), namespace=shared, frozen=True)


def refuse_family(word: str) -> None:
    """`train lstmm`: neither a family nor, by its looks, a file, nor a corpus."""
    if not re.fullmatch(r"\w[\w-]*", word) or Path(word).exists():
        return
    from chainrule.data import available

    corpora = available()
    if word in corpora:
        return
    families = [*NAMES, "word2vec"]
    hint = did_you_mean(word, [*families, *corpora]) or "chainrule data list names the corpora"
    listed = ", ".join(families)
    raise ConfigError(f"train {word!r}: no such family, corpus or file (families are {listed}; {hint})")
