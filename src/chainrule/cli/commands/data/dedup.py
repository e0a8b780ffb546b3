"""`chainrule data dedup`"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.documents import Sources
from chainrule.cli.args.options import Reporting
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show
from chainrule.errors import ConfigError
from chainrule.files import new_file
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Leave out documents that are copies or near copies of an earlier one, and on request poor ones.

    Example: chainrule data dedup texts/*.jsonl --quality --out clean.jsonl
    """

    sources: Sources = field(default_factory=Sources)
    out: Annotated[Path | None, NewFile] = None
    """The new .jsonl file, an object with "text" and "source" per line. Default: only count."""
    near: float = 0.8
    """Jaccard similarity of 12-byte shingles from which two documents count as copies; 1 for exact copies only."""
    quality: bool = False
    """Leave out what is too short, has few letters, odd words or much repetition to be prose."""
    workers: int = 1
    """Processes that measure documents at the same time, with the same result. Under mpiexec the ranks are these."""

    def run(self) -> None:
        Check("dedup", self).at_least(1, "workers")
        if self.out and self.out.suffix != ".jsonl":
            raise ConfigError(f"{self.out}: cannot be the output (its name must end in .jsonl)")
        rules = cr.data.RULES if self.quality else ()
        cleaner = cr.data.Cleaner(rules, near=None if self.near == 1 else self.near)
        with Progress("documents") as progress:
            kept = cleaner(progress.documents(self.sources.read()), self.workers)
            if self.out is None:
                for _ in kept:
                    pass
            else:
                with new_file(self.out) as file:
                    for document in kept:
                        record = {"text": document.text, "source": f"{document.source}:{document.line}"}
                        file.write((json.dumps(record) + "\n").encode())
        show({**cleaner.report.to_dict(), "out": str(self.out) if self.out else "none"}, self.json)
