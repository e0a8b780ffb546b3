"""A new run as the options of `chainrule train` ask for it: its data, the model it begins with, its tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chainrule.cli.fields import sizes_of
from chainrule.cli.train_options import TrainOptions
from chainrule.data import Corpus, Shards
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.io import load_tokenizer
from chainrule.models import Model
from chainrule.runs import Run, load
from chainrule.runs.folder import free_folder
from chainrule.scaling.budget import choose
from chainrule.tasks.registry import task_of
from chainrule.text import Tokenizer


def new_run(asked: TrainOptions) -> Run:
    """The run in its directory, with its settings for --config beside it."""
    run = made(asked, Run.new)
    write(run.files.settings, asked.record(run).encode())
    return run


def made(asked: TrainOptions, make: Callable[..., Run]) -> Run:
    """What `make`, Run.new or Run.draft, makes of the options."""
    data = task_of(asked.family).find(asked.data)
    if isinstance(data, Shards) and asked.tokenizer is not None:
        raise ConfigError(f"train: tokenizer is {asked.tokenizer}, {asked.data} has its own (leave it out)")
    folder = asked.out or free_folder(Path("runs", asked.family))
    if asked.chooses and isinstance(data, Corpus):
        return _chosen(asked, make, folder, data)
    start, tokenizer = _start(asked)
    # With a model to begin with only what is said counts: the rest is as it is there.
    sizes = {n: getattr(asked, n) for n in sizes_of(asked.family) if start is None or n in asked.given}
    run = make(folder, data, asked.planned, asked.family, tokenizer, start, **sizes)
    if asked.planned != asked.training:  # said of a run that is there
        said = f"begins with {asked.init}: lr is {asked.planned.lr:g}, a tenth of what it is for new weights"
        asked.say(f"{said} (--lr for another)")
    return run


def _chosen(asked: TrainOptions, make: Callable[..., Run], folder: Path, corpus: Corpus) -> Run:
    """With sizes for the budget."""
    seconds = asked.training.budget or 0.0
    choice = choose(corpus, seconds, asked.family, asked.training.seed)
    asked.say(f"chosen: {choice}")
    chosen = {name: value for name, value in choice.training.items() if name not in asked.given}
    training = replace(asked.training, **chosen)
    return make(folder, corpus, training, asked.family, choice.tokenizer, **choice.sizes)


def _start(asked: TrainOptions) -> tuple[Model | None, Tokenizer | None]:
    """The model to begin with, if there is one, and the tokenizer."""
    if asked.init is None:
        return None, _tokenizer(asked)
    start, tokenizer = load(asked.init)
    if not asked.allows(tokenizer):
        raise ConfigError(f"train: tokenizer is {asked.tokenizer}, {asked.init} has its own (leave it out)")
    return start, tokenizer


def _tokenizer(asked: TrainOptions) -> Tokenizer | None:
    """The one that was asked for; None for that which the data make."""
    if asked.tokenizer == "char" and task_of(asked.family).wordpiece:
        raise ConfigError(
            f"train: tokenizer is char, which has no [CLS] (must be word pieces for a {asked.family}: leave it out)"
        )
    if asked.tokenizer in (None, "char"):
        return None
    return load_tokenizer(asked.tokenizer)
