"""What was asked for: the options that `chainrule train` has for every family, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console

from chainrule.cli.args.config_file import toml
from chainrule.cli.args.sizes import sizes_of
from chainrule.data import Corpus
from chainrule.io import load_tokenizer
from chainrule.runs import Run
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.train import TrainConfig

Training = TrainConfig
# Settings of a training that are chosen for a budget, unless they are given.
CHOSEN = ("batch_size", "lr", "warmup", "max_steps", "eval_every", "save_every")


@dataclass(frozen=True)
class TrainOptions:
    """The sizes of a family are added to these."""

    family: ClassVar[str]
    given: ClassVar[frozenset[str]] = frozenset()  # fields with a flag or a line in the file, default or not
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

    def say(self, words: str) -> None:
        """Where progress is told."""
        Console(stderr=self.json, highlight=False, soft_wrap=True).print(words, markup=False)

    @property
    def planned(self) -> TrainConfig:
        """The settings of the training; weights that have learnt already take small steps, or they forget."""
        if self.init is None or "lr" in self.given:
            return self.training
        return replace(self.training, lr=self.training.lr / 10)

    @property
    def chooses(self) -> bool:
        """A budget and nothing about sizes: they are chosen to fit it."""
        said = {*sizes_of(self.family), "tokenizer", "batch_size", "lr", "init", "max_steps"} & self.given
        return self.training.budget is not None and self.family in ("gpt", "llama") and not said

    def allows(self, tokenizer: Tokenizer) -> bool:
        """No other tokenizer was asked for."""
        if self.tokenizer in (None, "char"):
            return self.tokenizer is None or isinstance(tokenizer, CharTokenizer)
        return load_tokenizer(self.tokenizer) == tokenizer

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
        where = {
            "out": self.out,
            "json": self.json or None,
        }  # of the command, not of the run: not in its record
        return toml(self._own | where | said)

    def record(self, run: Run) -> str:
        """The same of a run that has begun, with what was chosen for it."""
        model = {name: getattr(run.model.config, name) for name in sizes_of(self.family)}
        own = self._own
        if self.chooses and isinstance(run.corpus, Corpus) and not isinstance(run.tokenizer, CharTokenizer):
            own["tokenizer"] = run.folder  # where it is kept
        return toml(own | model | settled(run.trainer.config))

    @property
    def _own(self) -> dict[str, Any]:
        """What is neither a size nor a setting of the training."""
        return {"family": self.family, "data": self.data, "tokenizer": self.tokenizer, "init": self.init}


def settled(config: TrainConfig) -> dict[str, Any]:
    """The settings that count: a budget replaces the number of steps."""
    return {
        name: value for name, value in vars(config).items() if name != "max_steps" or config.budget is None
    }
