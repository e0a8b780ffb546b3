"""`chainrule train FAMILY`: one command per family of models, its flags the fields of the family's config."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import tyro
from rich.console import Console

from chainrule.cli.parse import flags, options
from chainrule.cli.progress import Progress
from chainrule.cli.resuming import FREE, agree, same_folder
from chainrule.cli.settings import as_flags, from_file, toml
from chainrule.cli.show import bits, command_line, size
from chainrule.cli.trials import find_lr, learn_one_batch
from chainrule.cli.wording import near
from chainrule.data import Corpus, Shards, available
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.io import load_tokenizer
from chainrule.models import LanguageModel, Model, Seq2Seq, describe
from chainrule.models import family as family_of
from chainrule.models.families import KNOWN
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.train import Run, TrainConfig
from chainrule.train.budget import choose
from chainrule.train.loop import NotFinite
from chainrule.train.materials import PIECED, defaults, material_of
from chainrule.train.runs import SETTINGS, free_folder, load_any

# The families that have a command, in the order they are named to people.
COMMON = [name for name in KNOWN if name != "bert-embedder"]
Training = tyro.conf.OmitArgPrefixes[TrainConfig]
# Settings of a training that are chosen for a budget, unless they are given.
CHOSEN = ("batch_size", "lr", "warmup", "max_steps", "eval_every", "save_every")

CHARACTERS = "char: each character is a token; or the path of a tokenizer's file. Default: char, or that of the shards."
WORD_PIECES = (
    "The path of a tokenizer's file, which must have [CLS], [SEP], [MASK] and [PAD]. Default: word pieces that are "
    "learnt from the data, or that of the shards."
)


@dataclass(frozen=True)
class Train:
    """What the commands share; `command` adds the sizes of a family."""

    family: ClassVar[str]
    given: ClassVar[frozenset[str]] = (
        frozenset()
    )  # fields with a flag or a line in the file, be it their default
    before: ClassVar[tuple[str, ...]] = ()  # words of a command line that stand in a file

    data: str = ""
    tokenizer: str | None = None
    out: Path | None = None
    """Directory of the run. Default: runs/FAMILY, or the next of runs/FAMILY-2, runs/FAMILY-3, ... that is free."""
    init: Path | None = None
    """Begin with the weights, sizes and tokenizer of this run or checkpoint: to go on with other data, or with another
    head, as from bert to bert-classifier. Without --lr the rate is a tenth of the default."""
    resume: Path | None = None
    """Go on with this run, with its data and settings, from its newest checkpoint."""
    config: Path | None = None
    """A TOML file with options, such as n_layer = 6; a flag on the command line counts more."""
    print_config: bool = False
    """Print the settings as a file for --config, and do nothing else."""
    overfit: bool = False
    """Only try whether the model can learn a single batch by heart, as it must; nothing is written."""
    find_lr: bool = False
    """Only try rising learning rates on a copy of the model and name the one to take; nothing is written."""
    json: bool = False
    """Print one JSON object at the end, and progress on stderr."""
    training: Training = field(default_factory=TrainConfig)

    def run(self) -> None:
        if self.print_config:
            print(self.settings(), end="")
            return
        if self.overfit or self.find_lr:
            self._try()
            return
        with Progress("reading"):
            run = self._resumed(self.resume) if self.resume else self._new()
        self._say(f"{size(run.model)}, {run.material.amount()}; run {run.folder}")
        if self.resume:
            self._say(going_on(run))
        try:
            result = run.train(Console(stderr=self.json, highlight=False))
        except NotFinite as error:
            raise NotFinite(f"{error}{remedy(run)}") from error
        if self.json:
            print(json.dumps(summary(run, result.validation) | {"interrupted": result.interrupted}))
        else:
            print(f"validation loss {bits(run, result.validation)} after {result.steps:,} steps")
        if result.best and not self.json:
            step, loss = result.best
            print(f"best at step {step:,}, {bits(run, loss)}: the one that is used from here on")
        if result.interrupted:
            again = f"{command_line()} train {self.family} --resume {run.folder}"
            self._say(f"interrupted; go on with: {again}")
            raise SystemExit(130)
        if not self.json:
            writes = isinstance(run.model, LanguageModel | Seq2Seq)
            use, verb = ("let it write with", "sample") if writes else ("judge it with", "eval")
            print(f"{use}: {command_line()} {verb} {run.folder}")

    def _try(self) -> None:
        """The trials that were asked for."""
        with Progress("reading"):
            run = self._resumed(self.resume) if self.resume else self._made(Run.draft)
        if self.find_lr:
            find_lr(run, as_json=self.json)
        if self.overfit:
            learn_one_batch(run, as_json=self.json)

    def _new(self) -> Run:
        run = self._made(Run.new)
        write(run.folder / SETTINGS, self._record(run).encode())
        return run

    def _made(self, make: Callable[..., Run]) -> Run:
        data = material_of(self.family).find(self.data)
        if isinstance(data, Shards) and self.tokenizer is not None:
            raise ConfigError(f"train: tokenizer is {self.tokenizer}, {self.data} has its own (leave it out)")
        folder = self.out or free_folder(Path("runs", self.family))
        if self.chooses and isinstance(data, Corpus):
            return self._chosen(make, folder, data)
        start, tokenizer = self._start()
        # With a model to begin with only what is said counts: the rest is as it is there.
        sizes = {n: getattr(self, n) for n in sizes_of(self.family) if start is None or n in self.given}
        if self.planned != self.training:
            said = (
                f"begins with {self.init}: lr is {self.planned.lr:g}, a tenth of what it is for new weights"
            )
            self._say(f"{said} (--lr for another)")
        return make(folder, data, self.planned, self.family, tokenizer, start, **sizes)

    @property
    def planned(self) -> TrainConfig:
        """The settings of the training; weights that have learnt already take small steps, or they forget."""
        if self.init is None or "lr" in self.given:
            return self.training
        return replace(self.training, lr=self.training.lr / 10)

    def _say(self, words: str) -> None:
        Console(stderr=self.json, highlight=False, soft_wrap=True).print(words, markup=False)

    @property
    def chooses(self) -> bool:
        """A budget and nothing about sizes: they are chosen to fit it."""
        said = {*sizes_of(self.family), "tokenizer", "batch_size", "lr", "init", "max_steps"} & self.given
        return self.training.budget is not None and self.family in ("gpt", "llama") and not said

    def _chosen(self, make: Callable[..., Run], folder: Path, corpus: Corpus) -> Run:
        seconds = self.training.budget or 0.0
        choice = choose(corpus, seconds, self.family, self.training.seed)
        self._say(f"chosen: {choice}")
        chosen = {name: value for name, value in choice.training.items() if name not in self.given}
        training = replace(self.training, **chosen)
        return make(folder, corpus, training, self.family, choice.tokenizer, **choice.sizes)

    def settings(self) -> str:
        """All that --config can set, as it stands, in TOML."""
        model = {name: getattr(self, name) for name in sizes_of(self.family)}
        said = model | settled(self.planned)
        if self.chooses:  # in the file it would be a decision
            said = {
                name: value
                for name, value in said.items()
                if name in self.given or name not in (*model, *CHOSEN)
            }
        return toml(self._own | said)

    def _record(self, run: Run) -> str:
        """The same of a run that has begun, with what was chosen for it."""
        model = {name: getattr(run.model.config, name) for name in sizes_of(self.family)}
        own = self._own
        if self.chooses and isinstance(run.corpus, Corpus) and not isinstance(run.tokenizer, CharTokenizer):
            own["tokenizer"] = run.folder  # where it is kept
        return toml(own | model | settled(run.trainer.config))

    @property
    def _own(self) -> dict[str, Any]:
        return {"family": self.family, "data": self.data, "tokenizer": self.tokenizer, "init": self.init}

    def _start(self) -> tuple[Model | None, Tokenizer | None]:
        """The model to begin with, if there is one, and the tokenizer."""
        if self.init is None:
            return None, self._tokenizer()
        start, tokenizer = load_any(self.init)
        if not self._same_tokenizer(tokenizer):
            raise ConfigError(f"train: tokenizer is {self.tokenizer}, {self.init} has its own (leave it out)")
        return start, tokenizer

    def _tokenizer(self) -> Tokenizer | None:
        if self.tokenizer == "char" and self.family in PIECED:
            raise ConfigError(
                f"train: tokenizer is char, which has no [CLS] (must be word pieces for a {self.family}: leave it out)"
            )
        if self.tokenizer in (None, "char"):
            return None
        return load_tokenizer(self.tokenizer)

    def _same_tokenizer(self, tokenizer: Tokenizer) -> bool:
        if self.tokenizer in (None, "char"):
            return self.tokenizer is None or isinstance(tokenizer, CharTokenizer)
        return load_tokenizer(self.tokenizer) == tokenizer

    def _resumed(self, folder: Path) -> Run:
        """Data and settings come from the checkpoint; what is given all the same must agree with it, or is `FREE`."""
        run = Run.resume(folder)
        family = describe(run.model)["model_type"]
        if family != self.family:
            raise ConfigError(
                f"resume: {folder} holds a {family}, not a {self.family} (say train {family} --resume {folder})"
            )
        same_folder(self.out, folder)
        kind = material_of(self.family)
        if self.data != kind.default and kind.find(self.data) != run.corpus:
            raise ConfigError(f"resume: data is {self.data}, in the run {run.corpus.name} (leave it out)")
        if not self._same_tokenizer(run.tokenizer):
            raise ConfigError(f"resume: tokenizer is {self.tokenizer}, the run has another (leave it out)")
        said: dict[str, Any] = vars(self) | vars(self.training)
        default: dict[str, Any] = vars(type(self)()) | vars(type(self)().training)
        of_run = vars(run.model.config) | vars(run.trainer.config)
        changed = {name: said[name] for name in FREE if name in self.given and said[name] != of_run[name]}
        agree(said, default, self.given, of_run | {"max_steps": said["max_steps"]} | changed)
        if changed:
            run.change(**changed)
        total = run.trainer.plan.total
        if "max_steps" in self.given and self.training.max_steps != total:
            run.extend(self.training.max_steps)
        return run


def settled(config: TrainConfig) -> dict[str, Any]:
    """The settings that count: a budget replaces the number of steps."""
    return {
        name: value for name, value in vars(config).items() if name != "max_steps" or config.budget is None
    }


def remedy(run: Run) -> str:
    """How to go on with a smaller rate from the last checkpoint; a run that made no step is not there any more."""
    if not run.folder.exists():
        return ""
    again = f"{command_line()} train {describe(run.model)['model_type']} --resume {run.folder}"
    return f"; go on from the last checkpoint with: {again} --lr {run.trainer.config.lr / 10:g}"


def going_on(run: Run) -> str:
    """From where to where a resumed run goes, or that it is at its end."""
    steps, trainer = run.trainer.steps, run.trainer
    if run.finished:
        again = f"{command_line()} train {describe(run.model)['model_type']} --resume {run.folder}"
        more = 2 * max(steps, trainer.plan.total or 0)  # patience may have ended it before its plan did
        return f"the run is finished, at step {steps:,}; to go on, plan more: {again} --max-steps {more}"
    total = trainer.plan.total
    end = f"step {total:,}" if total else f"the end of {trainer.config.budget:g} seconds"
    return (
        f"from step {steps:,} to {end}; the learning rate is that of a run planned so from the start, now "
        f"{trainer.plan.lr(steps):.2g}"
    )


def summary(run: Run, validation: float) -> dict[str, Any]:
    """A run in numbers, for machines; losses are of the validation text."""
    return {
        "run": str(run.folder),
        "model": describe(run.model)["model_type"],
        "parameters": run.model.count(),
        "steps": run.trainer.steps,
        "seconds": round(run.trainer.seconds, 3),
        run.material.unit: validation,
    } | run.material.measures(validation, run.trainer.exam)


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
    file, kind = from_file(words, family), material_of(family)
    data: Any = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA", help=kind.about)]
    sizes.append(("data", data, field(default=file.pop("data", kind.default))))
    sizes.append(("training", Training, field(default_factory=partial(defaults, family))))
    tokens = CHARACTERS if family not in PIECED else WORD_PIECES
    sizes.append(("tokenizer", Annotated[str | None, tyro.conf.arg(help=tokens)], field(default=None)))
    about_it = (
        f"Train a model of the family {family}. Other families: "
        f"{', '.join(name for name in COMMON if name != family)}, word2vec, each with options of its own.\n\n"
        f"Example: chainrule train {family} {kind.example} --max-steps 5000 --out runs/mine"
    )
    shared: dict[str, Any] = {"family": family, "__doc__": about_it}
    made: Any = make_dataclass("Command", sizes, bases=(Train,), namespace=shared, frozen=True)
    made.before = tuple(as_flags(file, options(made)))
    made.given = flags([*made.before, *words])
    return made


def size_fields(config: type[Any], names: Sequence[str]) -> list[Any]:
    """Fields of a config as `make_dataclass` takes them, each a flag with its help."""
    types, about = get_type_hints(config), documented(config)
    default = {f.name: f.default for f in fields(config)}
    return [
        (name, Annotated[types[name], tyro.conf.arg(help=about.get(name))], field(default=default[name]))
        for name in names
    ]


def sizes_of(family: str) -> list[str]:
    """The fields of a family's config but for those that the data decide."""
    decided = material_of(family).decides
    return [f.name for f in fields(family_of(family).config) if f.name not in decided]


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
