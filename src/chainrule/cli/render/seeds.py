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
    found = cr.runs.seeds.together(histories)
    return {
        "run": str(where),
        "seeds": len(histories),
        "mean": {name: spread.mean for name, spread in found.items()},
        "standard_error": {name: spread.error for name, spread in found.items()},
        "runs": {str(history.folder): cr.runs.seeds.results(history) for history in histories},
    }
