"""`chainrule runs compare`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.commands.runs.list import said
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.seeds import in_words, summary
from chainrule.cli.render.tables import table
from chainrule.errors import ConfigError

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a curve


@dataclass(frozen=True)
class Command(Reporting):
    """Compare runs: the settings in which they differ, their results side by side, and their curves.

    A directory that `chainrule train --seeds` made is compared by the means of its runs, with their standard errors.

    Example: chainrule runs compare runs/gpt runs/gpt-2
    """

    runs: Annotated[tuple[Path, ...], Argument("RUN")]
    """Directories of two runs or more, or of seeds."""

    def run(self) -> None:
        with Progress("reading"):
            found = [(str(folder), of_folder(folder)) for folder in self.runs]
        if sum(len(members) for _, members in found) < 2:
            raise ConfigError(f"runs compare: got {len(self.runs)} run (must be at least two)")
        refuse_twice([history.folder for _, members in found for history in members])
        names, each = [name for name, _ in found], [members for _, members in found]
        settings = cr.runs.compare.different([settings_of(members) for members in each])
        machines = cr.runs.compare.different([members[0].machine for members in each])
        grouped = over_seeds([members[0] for members in each if len(members) == 1])
        if self.json:
            results = {name: machine_results(members) for name, members in found}
            print(
                json.dumps({"settings": settings, "machine": machines, "results": results, "seeds": grouped})
            )
            return
        every = [history for members in each for history in members]
        parts = [
            _lines("setting", names, settings) or ["the settings are the same"],
            _lines("machine", names, machines),
            results_table(each, names),
            [line for group in grouped for line in seeds_in_words(group)],
            curves(every, [str(history.folder) for history in every]),
        ]
        print("\n\n".join("\n".join(part) for part in parts if part))


def of_folder(folder: Path) -> list[cr.runs.History]:
    """The run in a directory, or the runs of a directory of seeds."""
    return [cr.runs.History.of(each) for each in cr.runs.seeds.folders(folder) or [folder]]


def refuse_twice(folders: Sequence[Path]) -> None:
    """A run is compared once: as two seeds it would have a standard error of 0."""
    known: dict[Path, Path] = {}
    for folder in folders:
        if other := known.get(folder.resolve()):
            same = f", as {other}" if other != folder else ""
            raise ConfigError(f"runs compare: {folder} is given twice{same} (must be different runs)")
        known[folder.resolve()] = folder


def settings_of(members: Sequence[cr.runs.History]) -> dict[str, Any]:
    """The settings of a run; of several seeds they are the same but for these."""
    listed = ", ".join(str(history.settings.get("seed")) for history in members)
    return members[0].settings | ({"seed": listed} if len(members) > 1 else {})


def over_seeds(singles: Sequence[cr.runs.History]) -> list[dict[str, Any]]:
    """Runs that were given one by one and differ only in the seed, together; the same seed twice measures nothing."""
    found = ((group, {repr(h.settings.get("seed")) for h in group}) for group in cr.runs.seeds.alike(singles))
    groups = [group for group, seeds in found if len(group) == len(seeds) > 1]
    return [
        {"runs": [str(history.folder) for history in group]}
        | {name: vars(spread) for name, spread in cr.runs.seeds.together(group).items()}
        for group in groups
    ]


def seeds_in_words(group: dict[str, Any]) -> list[str]:
    """Means with their standard errors, a line each."""
    spreads = {name: cr.runs.seeds.Spread(**value) for name, value in group.items() if name != "runs"}
    return in_words(spreads, len(group["runs"]), ", ".join(group["runs"]))


def machine_results(members: Sequence[cr.runs.History]) -> dict[str, Any]:
    """The facts of a run with its scores; of several seeds the means and their errors."""
    if len(members) == 1:
        return cr.runs.compare.facts(members[0]) | members[0].scores
    return summary(members, members[0].folder.parent)


def _lines(title: str, names: Sequence[str], differ: dict[str, list[Any]]) -> list[str]:
    rows = [[name, *map(_word, values)] for name, values in differ.items()]
    return table([title, *names], rows) if rows else []


def results_table(each: Sequence[Sequence[cr.runs.History]], names: Sequence[str]) -> list[str]:
    """A line for every result; of several seeds a mean with its standard error."""
    columns = [_results(members) for members in each]
    known = dict.fromkeys(name for column in columns for name in column)
    rows = [[name.replace("_", " "), *(column.get(name, "-") for column in columns)] for name in known]
    return table(["result", *names], rows)


def _results(members: Sequence[cr.runs.History]) -> dict[str, str]:
    first = cr.runs.compare.facts(members[0]) | members[0].scores
    if len(members) == 1:
        return {name: said(name, value) for name, value in first.items()}
    means = {name: str(spread) for name, spread in cr.runs.seeds.together(members).items() if name in first}
    same = {name: said(name, first[name]) for name in ("family", "parameters", "steps")}
    return same | means | {"seeds": str(len(members))}


def curves(found: Sequence[cr.runs.History], names: Sequence[str]) -> list[str]:
    """Training losses as rows of bars, all on the same scale of steps and of losses."""
    drawn = [np.array(history.series("loss")).reshape(-1, 2).T for history in found]
    smoothed = [(steps, cr.runs.records.plot.smooth(losses)) for steps, losses in drawn]
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
