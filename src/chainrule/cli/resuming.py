"""What `--resume` asks of the other options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError

# Settings of a training that may be others from here on: the highest rate, and when to look, save and stop.
FREE = ("lr", "on_nan", "eval_every", "save_every", "sample_every", "patience")


def agree(
    said: Mapping[str, Any], default: Mapping[str, Any], given: frozenset[str], of_run: Mapping[str, Any]
) -> None:
    """Settings come from the run; one that is given all the same, be it the default, must agree with it."""
    for name, value in of_run.items():
        meant = name in said and (name in given or said[name] != default[name])
        if meant and said[name] != value:
            had = "none" if value is None else value
            raise ConfigError(f"resume: {name} is {said[name]}, in the run {had} (leave it out)")


def same_folder(out: Path | None, folder: Path) -> None:
    """A run stays where it is."""
    if out is not None and out != folder:
        raise ConfigError(f"resume: out is {out}, the run is in {folder} (leave it out)")
