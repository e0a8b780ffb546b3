"""What was asked for: the options that `chainrule train` has for every family, and what follows from them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from chainrule.cli.args.config_file import toml
from chainrule.cli.args.families import sizes_of
from chainrule.cli.args.options import Given
from chainrule.columns import Columns
from chainrule.train.config import TrainConfig

# Settings of a training that are chosen for a budget, unless they are given.
CHOSEN = ("batch_size", "lr", "clip", "warmup", "max_steps", "eval_every", "save_every")
FITTED = ("gpt", "llama")  # families whose sizes are chosen for a budget


@dataclass(frozen=True, kw_only=True)
class Speaking:
    """Options of a command that trains: what it says while it works."""

    json: bool = False
    """Print one JSON object at the end, and everything else on stderr."""

    def say(self, words: str) -> None:
        """Progress: on stderr if stdout is for machines. If nobody reads it the log notices, and the run is saved."""
        with suppress(BrokenPipeError):
            print(words, file=sys.stderr if self.json else sys.stdout)


@dataclass(frozen=True)
class TrainOptions(Speaking):
    """`commands.train.family` adds the sizes of a family to these, as a field `sizes`."""

    family: ClassVar[str]
    sizes: ClassVar[Any]
    init_embeddings: ClassVar[Path | None] = None  # an option of encoders

    data: str = ""
    tokenizer: str | None = None
    out: Path | None = None
    """Directory of the run. Default: runs/FAMILY, or the next of runs/FAMILY-2, runs/FAMILY-3, ... that is free."""
    init: Path | None = None
    """Start from the weights, sizes and tokenizer of this run or checkpoint: to continue with other data, or with
    another head, as from bert to bert-classifier. Without --lr the learning rate is a tenth of the default."""
    resume: Path | None = None
    """Resume this run, with its data and settings, from its newest checkpoint; or all runs of a directory of seeds."""
    seeds: int = 1
    """Train so many runs, with the seeds --seed, --seed + 1, ..., in the directories seed-0, seed-1, ... of --out, and
    print the mean of their results with its standard error."""
    config: Path | None = None
    """A TOML file with options, such as n_layer = 6; flags override it."""
    print_config: bool = False
    """Print the settings as a file for --config, and do nothing else."""
    overfit: bool = False
    """Only test whether the model can overfit one batch, as a sound model can; nothing is written."""
    find_lr: bool = False
    """Only try rising learning rates on a copy of the model and suggest one; nothing is written."""
    columns: Columns = field(default_factory=Columns)
    training: TrainConfig = field(default_factory=TrainConfig)
    given: Given = field(default_factory=Given)
    """The options with a flag or a line in the file, default or not."""

    @property
    def planned(self) -> TrainConfig:
        """The settings of the training; weights that have learned already take small steps, or they forget."""
        if self.init is None or "lr" in self.given or self.training.freeze != "none":
            return self.training
        return replace(self.training, lr=self.training.lr / 10)

    @property
    def chooses(self) -> bool:
        """A budget and nothing about sizes: they are chosen to fit it."""
        return self.training.budget is not None and self.family in FITTED and not self.decided

    @property
    def decided(self) -> list[str]:
        """The options given that leave no choice of sizes: they are sizes, or decide the vocabulary."""
        sizes = [name for name in sizes_of(self.family) if not self.harmless(name)]
        return [name for name in (*sizes, "tokenizer", "init") if name in self.given]

    def harmless(self, name: str) -> bool:
        """A field of the model's config that is no size, such as dropout: it goes with any choice of sizes."""
        return isinstance(getattr(self.sizes, name), bool | float | str)

    @classmethod
    def by_data(cls) -> dict[str, Any]:
        """The options whose default is not that of all families: what it is, None if it follows the number of texts."""
        from chainrule.models.suited import chosen

        return chosen(cls.family)

    @property
    def suits(self) -> bool:
        """Sizes and settings that are not given are chosen by the number of texts."""
        return bool(self.by_data())

    def settings(self) -> str:
        """Everything that --config can set, as it stands, in TOML."""
        model = {name: getattr(self.sizes, name) for name in sizes_of(self.family)}
        said = model | settled(self.planned)
        if self.chooses or self.suits:  # in the file it would be a decision
            open_ = ({*model, *CHOSEN} if self.chooses else {*self.by_data()}) - self.given
            said = {name: value for name, value in said.items() if name not in open_}
        of_command = {"out": self.out, "json": self.json or None}  # not of the run: not in its record
        return toml(self.own | of_command | said)

    @property
    def own(self) -> dict[str, Any]:
        """What is neither a size nor a setting of the training."""
        own = {"family": self.family, "data": self.data, "tokenizer": self.tokenizer, "init": self.init}
        if self.init_embeddings is not None:
            own["init_embeddings"] = self.init_embeddings
        return own | in_toml(vars(self.columns))


def in_toml(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of columns, several with commas between them."""
    said = {name: value for name, value in columns.items() if value not in (None, ())}
    return {name: ",".join(map(str, v)) if isinstance(v, list | tuple) else v for name, v in said.items()}


def settled(config: TrainConfig) -> dict[str, Any]:
    """The settings that count: a budget replaces the number of steps."""
    replaced = () if config.budget is None else ("max_steps",)
    return {name: value for name, value in vars(config).items() if name not in replaced}
