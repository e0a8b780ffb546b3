"""Merging: the plain model that computes what a tuned one does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from chainrule.errors import ConfigError
from chainrule.models import Model
from chainrule.models.tuning.parts import merged
from chainrule.runs.load import open_model, run_of
from chainrule.runs.tuned.adapter import is_adapter
from chainrule.runs.tuned.base import arrays_by_name, open_base, read_config, same
from chainrule.text import Tokenizer


class Merged(NamedTuple):
    """A tuned model with what it learned added into its weights."""

    model: Model
    tokenizer: Tokenizer
    tuned: Model
    """As it was."""
    changed: tuple[str, ...]
    """The weights that are not those of the base."""


def merge(path: Path) -> Merged:
    """The plain model that computes what a tuned one does; refused if there is nothing to merge."""
    loaded = open_model(path)
    about = (
        loaded.checkpoint.adapter_config
        if loaded.checkpoint
        else read_config(path)
        if is_adapter(path)
        else {}
    )
    if not about:
        raise ConfigError(f"merge: {path} holds whole weights, no adapter (export writes them as they are)")
    _, base, _ = open_base(about, run_of(path))
    model, there = merged(loaded.model), arrays_by_name(base, loaded.model)
    changed = tuple(name for name, array in model.arrays().items() if not same(array, there.get(name)))
    if not changed:
        rule = "must change some: train it first, or take a later checkpoint"
        raise ConfigError(f"merge: the adapter of {path} changes no weight of its base ({rule})")
    return Merged(model, loaded.tokenizer, loaded.model, changed)
