"""`chainrule runs list`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line
from chainrule.cli.render.tables import table
from chainrule.machine import clock


@dataclass(frozen=True)
class Command:
    """List the runs in a directory: what they are, how far they came, and how well they do.

    Example: chainrule runs list runs
    """

    folder: Annotated[Path, Argument("DIRECTORY")] = Path("runs")
    """Where to look; directories in it are searched as well."""
    json: bool = False
    """Print one JSON array."""

    def run(self) -> None:
        facts = cr.runs.compare.facts
        with Progress("reading"):
            found = cr.runs.histories(self.folder)
        if self.json:
            print(json.dumps([{"run": str(h.folder), "problem": h.problem} | facts(h) for h in found]))
            return
        if not found:
            print(f"no runs in {self.folder}; make one with: {command_line('train', 'gpt')}")
            return
        titles = [name.replace("_", " ") for name in facts(found[0])]
        rows = [[str(h.folder), *(said(name, value) for name, value in facts(h).items())] for h in found]
        print("\n".join(table(["run", *titles], rows)))
        for history in found:
            if history.problem:
                print(f"{history.folder}: {history.problem}")


def said(name: str, value: Any) -> str:
    """A fact in words."""
    if value is None:
        return "-"
    if name == "time":
        return clock(value)
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
