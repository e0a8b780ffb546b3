"""`chainrule ladder`"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import chainrule as cr
from chainrule.cli.args.documents import TextColumns, say_reading
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.render.progress import Progress
from chainrule.columns import Columns
from chainrule.errors import ConfigError, Failure
from chainrule.files import write
from chainrule.scaling.rungs import LadderConfig, Rung, table
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Train every kind of language model on a text, from counting to attention, and compare them in bits per byte.

    Example: chainrule ladder book.txt --params 200000 --steps 1500 --seeds 3 --out runs/ladder-book
    """

    data: Annotated[str, Argument("TEXT")] = "pydoc"
    """A text file, a table with a column of texts, or a corpus that `chainrule data list` knows."""
    out: Path | None = None
    """Directory for ladder.md, ladder.json and ladder.png. Default: runs/ladder, or the next number that is free."""
    workers: int = 1
    """Networks that are trained at the same time, with the same result. Under mpiexec the ranks are these."""
    columns: TextColumns = field(default_factory=Columns)
    models: LadderConfig = field(default_factory=LadderConfig)

    def run(self) -> None:
        from chainrule.scaling.ladder import Ladder

        Check("ladder", self).at_least(1, "workers")
        corpus = cr.data.load(self.data, self.columns)
        say_reading(corpus.reading)
        ladder = Ladder(corpus, self.models)
        if ladder.larger:
            least = ", ".join(f"{title} {count:,}" for title, count in ladder.larger.items())
            print(f"note: these have more parameters than {self.models.params:,}: {least}", file=sys.stderr)
        if self.out:
            cr.runs.folder.make_empty(self.out)
        folder = self.out or cr.runs.folder.make_free(Path("runs/ladder"))
        rungs: list[Rung] = []
        failed: list[str] = []
        try:
            with Progress("climbing") as progress:

                def failure(said: str) -> None:
                    failed.append(said)
                    progress.console.print(f"failed: {said}")

                def tell(title: str, fraction: float) -> None:
                    progress.say(f"{title} {fraction:.0%}")

                for rung in ladder.climb(tell, self.workers, failure):
                    reached = f"{rung.reached:.3f} bits per byte   {rung.seconds:.1f} s"
                    progress.console.print(f"{rung.title:<14} {reached}")
                    rungs.append(rung)
        finally:  # after Ctrl-C as well: what was climbed is kept
            self._write(folder, corpus, rungs)
        files = f"{folder}/ladder.md, ladder.json, ladder.png"
        self.report(self._record(corpus, rungs), lambda: f"\n{table(rungs)}\n{files}")
        if failed:
            raise Failure(f"ladder: {len(failed)} networks failed, their rungs are left out (see above)")

    def _write(self, folder: Path, corpus: cr.data.Corpus, rungs: list[Rung]) -> None:
        from chainrule.cli.render.plots.canvas import save
        from chainrule.cli.render.plots.ladder import ladder

        if not rungs:
            folder.rmdir()
            return
        write(folder / "ladder.json", json.dumps(self._record(corpus, rungs), indent=2).encode() + b"\n")
        write(folder / "ladder.md", table(rungs).encode())
        try:
            save(ladder(rungs, Path(corpus.name).name), folder / "ladder.png")
        except ConfigError as error:  # everything but the picture is there
            print(f"no picture: {error}", file=sys.stderr)

    def _record(self, corpus: cr.data.Corpus, rungs: list[Rung]) -> dict[str, Any]:
        return {
            "text": {"name": corpus.name, "sha256": corpus.sha256},
            "settings": asdict(self.models),
            "rungs": [
                asdict(r) | {"mean": r.mean, "standard_error": r.error, "interval": r.interval} for r in rungs
            ],
        }
