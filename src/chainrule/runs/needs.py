"""What a task needs beside its data: other models by their paths, and functions, which a run keeps by name only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainrule.errors import CheckpointError, ConfigError, Setting
from chainrule.runs.load import load, this_version
from chainrule.tasks.named import NamedModel
from chainrule.tasks.task import Task


def named_model(path: str | Path | NamedModel) -> NamedModel:
    """The model at a path."""
    return path if isinstance(path, NamedModel) else NamedModel(str(Path(path).absolute()), *load(path))


def facts_in(folder: Path, task: Task) -> dict[str, Any]:
    """What a run in this folder writes down of its task; of each model also where it is if both are moved together."""
    facts = task.facts()
    for name in task.models:
        if model := facts.get(name):
            facts[name] = model | {"near": os.path.relpath(Path(model["path"]).resolve(), folder.resolve())}
    return facts


def same_model(folder: str | Path, name: str, facts: Mapping[str, Any]) -> NamedModel:
    """The model that a run has used so far as its `name`, such as reward; it can continue with no other."""
    with this_version(folder):
        path, expected = str(facts["path"]), str(facts["sha256"])
        moved = Path(folder, facts.get("near", path)).resolve()  # runs that are older know the path alone
    if moved.exists() and not Path(path).exists():
        path = str(moved)
    if not Path(path).exists():
        rule = f"put it back, or where it was beside the run: {moved}"
        raise CheckpointError(f"{folder}: its {name} {path} is not there ({rule})")
    found = named_model(path)
    if found.facts["sha256"] != expected:
        rule = "put the old one back, or begin a new run"
        raise CheckpointError(f"{folder}: its {name} {path} has changed since the run began ({rule})")
    return found


def same_functions(
    folder: str | Path, names: Mapping[str, str | None], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The functions of a run, given again: their names alone would mean to run code that a file names."""
    for option, name in names.items():
        if name is not None and given.get(option) is None:
            raise ConfigError(
                f"{folder}: uses a function of yours, {name} (give it again: ", Setting(option), f" {name})"
            )
    return {option: given[option] for option, name in names.items() if name is not None}
