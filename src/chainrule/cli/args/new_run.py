"""A new run as the options of `chainrule train` ask for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from chainrule.cli.args.config_file import toml
from chainrule.cli.args.families import sizes_of
from chainrule.cli.args.training import TrainOptions, settled
from chainrule.data import Corpus
from chainrule.errors import ConfigError, Setting
from chainrule.files import write
from chainrule.models.registry import KNOWN
from chainrule.runs import Run
from chainrule.runs.folder import free_folder
from chainrule.scaling.budget import choose
from chainrule.tasks.registry import task_of
from chainrule.text import CharTokenizer


def new_run(asked: TrainOptions, *, draft: bool = False) -> Run:
    """The run in its directory, with its settings for --config beside it; of a draft nothing is written."""
    family, folder = asked.family, asked.out or free_folder(Path("runs", asked.family))
    if asked.tokenizer == "char" and KNOWN[family].word_pieces:
        rule = f"must be word pieces for a {family}: leave it out"
        raise ConfigError("train: ", Setting("tokenizer"), f" is char, which has no [CLS] ({rule})")
    data, training, tokenizer, sizes = _chosen(asked) or _given(asked)
    run = Run.new(folder, data, training, family, tokenizer, asked.init, draft=draft, **sizes)
    if asked.planned != asked.training:  # said once the run exists
        said = f"starts from {asked.init}: lr is {asked.planned.lr:g}, a tenth of what it is for new weights"
        asked.say(f"{said} (--lr for another)")
    if not draft:
        write(run.files.settings, _record(asked, run).encode())
    return run


def _given(asked: TrainOptions) -> tuple[Any, ...]:
    """Data, settings, tokenizer and sizes; with initial weights only those sizes that are said count."""
    names = [name for name in sizes_of(asked.family) if asked.init is None or name in asked.given]
    return asked.data, asked.planned, asked.tokenizer, {name: getattr(asked.sizes, name) for name in names}


def _chosen(asked: TrainOptions) -> tuple[Any, ...] | None:
    """The same for a text and a budget, if they decide."""
    corpus = task_of(asked.family).find(asked.data) if asked.chooses else None
    if not isinstance(corpus, Corpus):
        return None
    choice = choose(corpus, asked.training.budget or 0.0, asked.family, asked.training.seed)
    asked.say(f"chosen: {choice}")
    chosen = {name: value for name, value in choice.training.items() if name not in asked.given}
    return corpus, replace(asked.training, **chosen), choice.tokenizer, choice.sizes


def _record(asked: TrainOptions, run: Run) -> str:
    """The settings of a run that has begun, with what was chosen for it, as a file for --config."""
    model = {name: getattr(run.model.config, name) for name in sizes_of(asked.family)}
    own = asked.own
    if asked.chooses and isinstance(run.corpus, Corpus) and not isinstance(run.tokenizer, CharTokenizer):
        own["tokenizer"] = run.folder  # where it is kept
    return toml(own | model | settled(run.trainer.config))
