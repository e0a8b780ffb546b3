"""`chainrule runs report`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from chainrule.cli.html.report import page
from chainrule.cli.progress import Progress
from chainrule.files import write
from chainrule.train.history import History


@dataclass(frozen=True)
class Command:
    """Write a run as one page: curves, samples, findings, configuration, machine. It stands alone, without a network.

    Example: chainrule runs report runs/demo --out demo.html
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Directory of a run."""
    out: Path | None = None
    """The file to write. Default: report.html in the directory of the run."""

    def run(self) -> None:
        path = self.out or self.run_folder / "report.html"
        with Progress("reading"):
            write(path, page(History.of(self.run_folder)).encode("utf-8", "replace"))
        print(path)
