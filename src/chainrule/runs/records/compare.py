"""What a table says of runs, and in which settings they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.runs.records.history import History


def facts(history: History) -> dict[str, Any]:
    """What a table says of a run, as numbers."""
    step, loss = history.best or (None, None)
    return {
        "family": history.family, "parameters": history.parameters, "steps": history.steps,
        "best_validation": loss, "at_step": step, "bits_per_byte": history.bits_per_byte,
        "time": history.seconds, "state": history.state,
    }  # fmt: skip


def different(found: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """What is not the same in all of them, with its values.

    >>> different([{"lr": 0.1, "seed": 0}, {"lr": 0.2, "seed": 0}])
    {'lr': [0.1, 0.2]}
    """
    names = dict.fromkeys(name for each in found for name in each)
    values = {name: [each.get(name) for each in found] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}
