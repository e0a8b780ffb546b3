"""`chainrule runs compare`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.commands.runs.list import facts, said
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import table
from chainrule.errors import ConfigError

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a curve


@dataclass(frozen=True)
class Command:
    """Compare runs: the settings in which they differ, their results side by side, and their curves.

    Example: chainrule runs compare runs/gpt runs/gpt-2
    """

    runs: Annotated[tuple[Path, ...], Argument("RUN")]
    """Directories of two runs or more."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        if len(self.runs) < 2:
            raise ConfigError(f"runs compare: got {len(self.runs)} run (must be at least two)")
        with Progress("reading"):
            found = [cr.runs.History.of(folder) for folder in self.runs]
        names = [str(history.folder) for history in found]
        settings = different([history.settings for history in found])
        machines = different([history.machine for history in found])
        if self.json:
            results = dict(zip(names, map(facts, found), strict=True))
            print(json.dumps({"settings": settings, "machine": machines, "results": results}))
            return
        parts = [
            _lines("setting", names, settings) or ["the settings are the same"],
            _lines("machine", names, machines),
            results_table(found, names),
            curves(found, names),
        ]
        print("\n\n".join("\n".join(part) for part in parts if part))


def different(found: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """What is not the same in all runs, with its values."""
    names = dict.fromkeys(name for each in found for name in each)
    values = {name: [each.get(name) for each in found] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


def _lines(title: str, names: Sequence[str], differ: dict[str, list[Any]]) -> list[str]:
    rows = [[name, *map(_word, values)] for name, values in differ.items()]
    return table([title, *names], rows) if rows else []


def results_table(found: Sequence[cr.runs.History], names: Sequence[str]) -> list[str]:
    """A line for every result."""
    results = [facts(history) for history in found]
    rows = [[name.replace("_", " "), *(said(name, each[name]) for each in results)] for name in results[0]]
    return table(["result", *names], rows)


def curves(found: Sequence[cr.runs.History], names: Sequence[str]) -> list[str]:
    """Training losses as rows of bars, all on the same scale of steps and of losses."""
    drawn = [np.array(history.series("loss")).reshape(-1, 2).T for history in found]
    smoothed = [(steps, cr.runs.plot.smooth(losses)) for steps, losses in drawn]
    if not any(len(steps) for steps, _ in smoothed):
        return []
    low = min(losses.min() for _, losses in smoothed if len(losses))
    high = max(losses.max() for _, losses in smoothed if len(losses))
    last = max(steps.max() for steps, _ in smoothed if len(steps))
    lines = [f"training loss from {low:.3f} ({BARS[0]}) to {high:.3f} ({BARS[-1]}), steps 1 to {last:,.0f}"]
    wide = max(map(len, names))
    return lines + [
        f"{name:<{wide}}  {bars(steps, losses, (low, high), last)}"
        for name, (steps, losses) in zip(names, smoothed, strict=True)
    ]


def bars(steps: Any, losses: Any, reach: tuple[float, float], last: float) -> str:
    """One character for each stretch of steps, the higher the larger its mean loss."""
    low, high = reach
    place = np.minimum((steps - 1) / max(last, 1) * WIDTH, WIDTH - 1).astype(int)
    text = ""
    for column in range(WIDTH):
        inside = losses[place == column]
        height = (inside.mean() - low) / (high - low or 1) if len(inside) else -1
        text += BARS[min(int(height * len(BARS)), len(BARS) - 1)] if height >= 0 else " "
    return text.rstrip()


def _word(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text[:12] if len(text) == 64 else text  # a hash is known by its beginning
