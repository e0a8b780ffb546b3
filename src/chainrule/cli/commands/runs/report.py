"""`chainrule runs report`"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.args.outputs import replaced
from chainrule.cli.render.progress import Progress
from chainrule.errors import DataError
from chainrule.files import write


@dataclass(frozen=True)
class Command:
    """Write a run as one page: curves, samples, findings, configuration, machine. It works offline.

    Example: chainrule runs report runs/demo --out demo.html
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run."""
    out: Annotated[Path | None, replaced(".html")] = None
    """The file to write. Default: report.html in the directory of the run."""

    def run(self) -> None:
        from chainrule.cli.render.html.report import page

        path = self.out or self.run_folder / "report.html"
        with Progress("reading"):
            history = cr.runs.History.of(self.run_folder)
            check_log(history)
            write(path, page(history).encode("utf-8", "replace"))
        if history.problem:
            print(f"{history.state}: {history.problem}", file=sys.stderr)
        print(path)


def check_log(history: cr.runs.History) -> None:
    """A page without a line of the log would look like a run that has just begun."""
    log = cr.runs.RunFolder(history.folder).log
    if not history.records and log.is_file() and log.stat().st_size:
        raise DataError(f"{log}: no line of it can be read (must be as training wrote it: put a copy back)")
