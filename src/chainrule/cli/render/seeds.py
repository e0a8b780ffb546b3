"""What several seeds reach together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import chainrule as cr


def in_words(spreads: Mapping[str, cr.runs.seeds.Spread], count: int, where: Path | str) -> list[str]:
    """A mean with its standard error in each line."""
    width = max(map(len, spreads), default=0)
    lines = [f"{name.replace('_', ' '):<{width}}  {spread}" for name, spread in spreads.items()]
    return [f"{count} seeds in {where}, mean ± standard error", *lines]


def summary(histories: Sequence[cr.runs.History], where: Path) -> dict[str, Any]:
    """The same for machines, with the results of each run."""
    runs = {str(history.folder): cr.runs.seeds.results(history) for history in histories}
    return for_machines(cr.runs.seeds.together(histories), runs, where)


def for_machines(
    spreads: Mapping[str, cr.runs.seeds.Spread], runs: Mapping[str, Any], where: Path
) -> dict[str, Any]:
    """Means, their errors, and what each run reached."""
    means = {name: spread.mean for name, spread in spreads.items()}
    errors = {name: spread.error for name, spread in spreads.items()}
    return {
        "run": str(where),
        "seeds": len(runs),
        "mean": means,
        "standard_error": errors,
        "runs": dict(runs),
    }
