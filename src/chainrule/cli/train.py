"""`chainrule train FAMILY`: one command per family of models, its flags the fields of the family's config."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import tyro
from rich.console import Console

from chainrule.cli.parse import flags
from chainrule.cli.progress import Progress
from chainrule.cli.resuming import agree, same_folder
from chainrule.cli.show import bits, command_line, size
from chainrule.cli.wording import near
from chainrule.data import Shards, available
from chainrule.errors import ConfigError
from chainrule.io import load_tokenizer
from chainrule.models import FAMILIES, describe
from chainrule.models import family as family_of
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.train import Run, TrainConfig
from chainrule.train.material import find
from chainrule.train.runs import free_folder


@dataclass(frozen=True)
class Train:
    """What the commands share; `command` adds the sizes of a family."""

    family: ClassVar[str]
    given: ClassVar[frozenset[str]] = (
        frozenset()
    )  # fields with a flag on the command line, be it their default

    data: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")] = "pydoc"
    """A text file, a corpus that `chainrule data list` knows, or a directory that `chainrule data build` made."""
    tokenizer: str | None = None
    """char: every character is a token; or the path of a tokenizer's file. Default: char, or that of the shards."""
    out: Path | None = None
    """Directory of the run. Default: runs/FAMILY, or the next of runs/FAMILY-2, runs/FAMILY-3, ... that is free."""
    resume: Path | None = None
    """Go on with this run, with its data and settings, from its newest checkpoint."""
    json: bool = False
    """Print one JSON object at the end, and progress on stderr."""
    training: tyro.conf.OmitArgPrefixes[TrainConfig] = field(default_factory=TrainConfig)

    def run(self) -> None:
        with Progress("reading"):
            run = self._resumed(self.resume) if self.resume else self._new()
        console = Console(stderr=self.json, highlight=False, soft_wrap=True)
        console.print(f"{size(run.model)}, {amount(run)}; run {run.folder}", markup=False)
        if self.resume:
            console.print(going_on(run), markup=False)
        result = run.train(Console(stderr=self.json, highlight=False))
        if self.json:
            print(json.dumps(summary(run, result.validation) | {"interrupted": result.interrupted}))
        else:
            print(f"validation loss {bits(run, result.validation)} after {result.steps:,} steps")
        if result.interrupted:
            again = f"{command_line()} train {self.family} --resume {run.folder}"
            console.print(f"interrupted; go on with: {again}", markup=False)
            raise SystemExit(130)
        if not self.json:
            print(f"let it write with: {command_line()} sample {run.folder}")

    def _new(self) -> Run:
        config = family_of(self.family).config
        sizes = {f.name: getattr(self, f.name) for f in fields(config) if f.name != "vocab_size"}
        corpus = find(self.data)
        if isinstance(corpus, Shards) and self.tokenizer is not None:
            raise ConfigError(f"train: tokenizer is {self.tokenizer}, {self.data} has its own (leave it out)")
        folder = self.out or free_folder(Path("runs", self.family))
        return Run.new(folder, corpus, self.training, self.family, self._tokenizer(), **sizes)

    def _tokenizer(self) -> Tokenizer | None:
        if self.tokenizer in (None, "char"):
            return None
        return load_tokenizer(self.tokenizer)

    def _same_tokenizer(self, tokenizer: Tokenizer) -> bool:
        if self.tokenizer in (None, "char"):
            return self.tokenizer is None or isinstance(tokenizer, CharTokenizer)
        return load_tokenizer(self.tokenizer) == tokenizer

    def _resumed(self, folder: Path) -> Run:
        """Data and settings come from the checkpoint; what is given all the same must agree with it."""
        run = Run.resume(folder)
        kind = describe(run.model)["model_type"]
        if kind != self.family:
            raise ConfigError(
                f"resume: {folder} holds a {kind}, not a {self.family} (say train {kind} --resume {folder})"
            )
        same_folder(self.out, folder)
        if self.data != "pydoc" and find(self.data) != run.corpus:
            raise ConfigError(f"resume: data is {self.data}, in the run {run.corpus.name} (leave it out)")
        if not self._same_tokenizer(run.tokenizer):
            raise ConfigError(f"resume: tokenizer is {self.tokenizer}, the run has another (leave it out)")
        said: dict[str, Any] = vars(self) | vars(self.training)
        default: dict[str, Any] = vars(type(self)()) | vars(TrainConfig())
        of_run = vars(run.model.config) | vars(run.trainer.config)
        agree(said, default, self.given, of_run | {"max_steps": said["max_steps"]})
        total = run.trainer.plan.total
        if "max_steps" in self.given and self.training.max_steps != total:
            run.extend(self.training.max_steps)
        return run


def going_on(run: Run) -> str:
    """From where to where a resumed run goes, or that it is at its end."""
    steps, trainer = run.trainer.steps, run.trainer
    if run.finished:
        again = f"{command_line()} train {describe(run.model)['model_type']} --resume {run.folder}"
        return f"the run is finished, at step {steps:,}; to go on, plan more: {again} --max-steps {2 * steps}"
    total = trainer.plan.total
    end = f"step {total:,}" if total else f"the end of {trainer.config.budget:g} seconds"
    return (
        f"from step {steps:,} to {end}; the learning rate is that of a run planned so from the start, now "
        f"{trainer.plan.lr(steps):.2g}"
    )


def amount(run: Run) -> str:
    """How much a run reads, of what."""
    corpus = run.corpus
    if isinstance(corpus, Shards):
        return f"{len(run.training) + len(run.validation):,} tokens of {corpus.name}"
    return f"{len(corpus.text):,} characters of {corpus.name}"


def summary(run: Run, validation: float) -> dict[str, Any]:
    """A run in numbers, for machines; losses are of the validation text."""
    return {
        "run": str(run.folder),
        "model": describe(run.model)["model_type"],
        "parameters": run.model.count(),
        "steps": run.trainer.steps,
        "seconds": round(run.trainer.seconds, 3),
        "nats_per_token": validation,
        "bits_per_byte": run.bits_per_byte(validation),
    }


def command(family: str, words: Sequence[str] = ()) -> type[Train]:
    """The command of a family: `Train` with the fields of its config but the vocabulary, which the data decide.

    `words` are those it is called with: a flag that says the default is known from no flag at all. Without a family
    it is gpt, but a first word that is no data either was meant to be one.
    """
    if not family:
        refuse_family(words[0] if words else "")
        family = "gpt"
    config = family_of(family).config
    types, about = get_type_hints(config), documented(config)
    sizes: list[Any] = [
        (f.name, Annotated[types[f.name], tyro.conf.arg(help=about.get(f.name))], field(default=f.default))
        for f in fields(config)
        if f.name != "vocab_size"
    ]
    about_it = (
        f"Train a language model of the family {family} on a text. Other families: "
        f"{', '.join(name for name in FAMILIES if name != family)}, word2vec, each with options of its own.\n\n"
        f"Example: chainrule train {family} book.txt --max-steps 5000 --out runs/book"
    )
    shared: dict[str, Any] = {"family": family, "given": flags(words), "__doc__": about_it}
    return make_dataclass("Command", sizes, bases=(Train,), namespace=shared, frozen=True)


def refuse_family(word: str) -> None:
    """`train lstmm`: neither a family nor, by its looks, a file, nor a corpus."""
    corpora = available()
    if not re.fullmatch(r"\w[\w-]*", word) or word in corpora or Path(word).exists():
        return
    families = [*FAMILIES, "word2vec"]
    hint = near(word, [*families, *corpora])
    raise ConfigError(
        f"train {word!r}: no such family, corpus or file (families are {', '.join(families)}"
        f"{f'; {hint}' if hint else '; chainrule data list names the corpora'})"
    )


def documented(config: type[Any]) -> dict[str, str]:
    """The strings below the fields of a dataclass, as in its source."""
    found = {}
    for cls in reversed([c for c in config.__mro__ if is_dataclass(c)]):
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        for pair in pairwise(node.body if isinstance(node, ast.ClassDef) else ()):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found
