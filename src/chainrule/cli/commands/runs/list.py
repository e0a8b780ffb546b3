"""`chainrule runs list`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from chainrule.cli.args.options import Argument
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import table
from chainrule.machine import clock
from chainrule.runs.history import History, histories


@dataclass(frozen=True)
class Command:
    """List the runs in a directory: what they are, how far they came, and how well they do.

    Example: chainrule runs list runs
    """

    folder: Annotated[Path, Argument("FOLDER")] = Path("runs")
    """Where to look; directories in it are searched as well."""
    json: bool = False
    """Print one JSON array."""

    def run(self) -> None:
        with Progress("reading"):
            found = histories(self.folder)
        if self.json:
            print(json.dumps([{"run": str(h.folder), "problem": h.problem} | facts(h) for h in found]))
            return
        if not found:
            print(f"no runs in {self.folder}; make one with: chainrule train gpt")
            return
        print(
            "\n".join(
                table(["run", *(title.replace("_", " ") for title in TITLES)], [line(h) for h in found])
            )
        )
        for history in found:
            if history.problem:
                print(f"{history.folder}: {history.problem}")


TITLES = ("family", "parameters", "steps", "best_validation", "at_step", "bits_per_byte", "time", "state")


def facts(history: History) -> dict[str, Any]:
    """What a table says of a run, as numbers."""
    best = history.best
    return {
        "family": history.family,
        "parameters": history.parameters,
        "steps": history.steps,
        "best_validation": best[1] if best else None,
        "at_step": best[0] if best else None,
        "bits_per_byte": history.bits_per_byte,
        "time": history.seconds,
        "state": history.state,
    }


def line(history: History) -> list[str]:
    """The same for people."""
    return [str(history.folder), *(said(name, value) for name, value in facts(history).items())]


def said(name: str, value: Any) -> str:
    """A fact in words."""
    if value is None:
        return "-"
    if name == "time":
        return clock(value)
    return (
        f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )
