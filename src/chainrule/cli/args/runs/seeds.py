"""`--seeds`: the runs of several seeds, new or resumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from chainrule.cli.args.options import options_of
from chainrule.cli.args.reader import read
from chainrule.cli.args.runs.resume import same_folder
from chainrule.cli.args.runs.training import TrainOptions
from chainrule.errors import ConfigError, Setting
from chainrule.runs.folder import RunFolder, make_empty, make_free
from chainrule.runs.records.seeds import folder_of, folders, seed_of
from chainrule.validate import Check

T = TypeVar("T", bound=TrainOptions)


def parent_of(asked: TrainOptions) -> Path | None:
    """The directory of the runs if there are several seeds, new or begun; None for a single run."""
    Check("train", asked).at_least(1, "seeds")
    if asked.resume is not None and folders(asked.resume):
        same_folder(asked.out, asked.resume)
        return asked.resume
    if asked.seeds == 1:
        return None
    if asked.overfit or asked.find_lr:
        trial = Setting("overfit" if asked.overfit else "find_lr")
        raise ConfigError(
            "train: ", Setting("seeds"), " is given with ", trial, " (a trial has one: leave it out)"
        )
    if asked.resume is not None:
        said = f" is {asked.seeds}, {asked.resume} is a single run (leave it out)"
        raise ConfigError("resume: ", Setting("seeds"), said)
    if asked.out is None:
        return make_free(Path("runs", asked.family))
    make_empty(asked.out)
    return asked.out


def each_seed(asked: T, parent: Path) -> Iterator[T]:
    """The options of the run of each seed; a run that has begun is resumed, others begin with its settings."""
    begun = folders(parent)
    if not begun:
        for seed in range(asked.training.seed, asked.training.seed + asked.seeds):
            training = replace(asked.training, seed=seed)
            yield replace(asked, seeds=1, out=folder_of(parent, seed), training=training)
        return
    first = seed_of(begun[0])
    for seed in sorted({*map(seed_of, begun), *range(first, first + asked.seeds)}):
        folder = folder_of(parent, seed)
        if folder in begun:
            yield replace(asked, seeds=1, out=folder, resume=folder)
        else:
            settings = RunFolder(begun[0]).settings
            words = ["--config", str(settings), "--seed", str(seed), "--out", str(folder)]
            yield read(type(asked), options_of(type(asked)), [*words, *(["--json"] if asked.json else [])])
