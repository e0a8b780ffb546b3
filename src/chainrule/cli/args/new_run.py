"""A new run as the options of `chainrule train` ask for it: its data, initial weights and tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chainrule.cli.args.config_file import toml
from chainrule.cli.args.families import WORD_PIECES, sizes_of
from chainrule.cli.args.training import TrainOptions, settled
from chainrule.data import Corpus, Shards
from chainrule.errors import ConfigError, Setting
from chainrule.files import write
from chainrule.io import load_tokenizer
from chainrule.models import Model
from chainrule.runs import Run, load
from chainrule.runs.folder import free_folder
from chainrule.scaling.budget import choose
from chainrule.tasks.registry import task_of
from chainrule.text import CharTokenizer, Tokenizer


def new_run(asked: TrainOptions) -> Run:
    """The run in its directory, with its settings for --config beside it."""
    run = made(asked, Run.new)
    write(run.files.settings, _record(asked, run).encode())
    return run


def made(asked: TrainOptions, make: Callable[..., Run]) -> Run:
    """What `make`, Run.new or Run.draft, makes of the options."""
    data = task_of(asked.family).find(asked.data)
    if isinstance(data, Shards) and asked.tokenizer is not None:
        raise _own_tokenizer(asked, asked.data)
    folder = asked.out or free_folder(Path("runs", asked.family))
    if asked.chooses and isinstance(data, Corpus):
        return _chosen(asked, make, folder, data)
    start, tokenizer = _start(asked)
    # With initial weights only what is said counts: the rest is as it is there.
    names = [name for name in sizes_of(asked.family) if start is None or name in asked.given]
    sizes = {name: getattr(asked.sizes, name) for name in names}
    run = make(folder, data, asked.planned, asked.family, tokenizer, start, **sizes)
    if asked.planned != asked.training:  # said of a run that is there
        said = f"starts from {asked.init}: lr is {asked.planned.lr:g}, a tenth of what it is for new weights"
        asked.say(f"{said} (--lr for another)")
    return run


def allows(asked: TrainOptions, tokenizer: Tokenizer) -> bool:
    """No other tokenizer was asked for."""
    if asked.tokenizer in (None, "char"):
        return asked.tokenizer is None or isinstance(tokenizer, CharTokenizer)
    return load_tokenizer(asked.tokenizer) == tokenizer


def _chosen(asked: TrainOptions, make: Callable[..., Run], folder: Path, corpus: Corpus) -> Run:
    """With sizes for the budget."""
    seconds = asked.training.budget or 0.0
    choice = choose(corpus, seconds, asked.family, asked.training.seed)
    asked.say(f"chosen: {choice}")
    chosen = {name: value for name, value in choice.training.items() if name not in asked.given}
    training = replace(asked.training, **chosen)
    return make(folder, corpus, training, asked.family, choice.tokenizer, **choice.sizes)


def _start(asked: TrainOptions) -> tuple[Model | None, Tokenizer | None]:
    """The model with the initial weights, if there is one, and the tokenizer."""
    if asked.init is None:
        return None, _tokenizer(asked)
    start, tokenizer = load(asked.init)
    if not allows(asked, tokenizer):
        raise _own_tokenizer(asked, asked.init)
    return start, tokenizer


def _own_tokenizer(asked: TrainOptions, owner: str | Path) -> ConfigError:
    said = f" is {asked.tokenizer}, {owner} has its own (leave it out)"
    return ConfigError("train: ", Setting("tokenizer"), said)


def _tokenizer(asked: TrainOptions) -> Tokenizer | None:
    """The one that was asked for; None for the one that the data make."""
    if asked.tokenizer == "char" and asked.family in WORD_PIECES:
        rule = f"must be word pieces for a {asked.family}: leave it out"
        raise ConfigError("train: ", Setting("tokenizer"), f" is char, which has no [CLS] ({rule})")
    if asked.tokenizer in (None, "char"):
        return None
    return load_tokenizer(asked.tokenizer)


def _record(asked: TrainOptions, run: Run) -> str:
    """The settings of a run that has begun, with what was chosen for it, as a file for --config."""
    model = {name: getattr(run.model.config, name) for name in sizes_of(asked.family)}
    own = asked.own
    if asked.chooses and isinstance(run.corpus, Corpus) and not isinstance(run.tokenizer, CharTokenizer):
        own["tokenizer"] = run.folder  # where it is kept
    return toml(own | model | settled(run.trainer.config))
