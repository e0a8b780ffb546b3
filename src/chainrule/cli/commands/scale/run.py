"""`chainrule scale run`"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import chainrule as cr
from chainrule.cli.args.documents import TextColumns, say_reading
from chainrule.cli.args.options import Also, Argument
from chainrule.cli.args.outputs import Folder
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.seeds import in_words
from chainrule.cli.render.show import command_line
from chainrule.columns import Columns
from chainrule.errors import Failure
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.scaling.study import Measured


@dataclass(frozen=True)
class Command:
    """Train every model of a plan on a text, each as an ordinary run, and write what they reach as one table.

    Called again it continues where it stopped.

    Example: chainrule scale run plan.json book.txt --out runs/study --workers 2
    """

    plan: Annotated[Path, Argument("PLAN.json")]
    """The file that `chainrule scale plan --out` has written."""
    data: Annotated[str, Argument("TEXT")] = "stdlib"
    """A text file, a table with a column of texts, or a corpus that `chainrule data list` knows."""
    out: Annotated[Path, Folder] = Path("runs/study")
    """Directory of the study."""
    tokenizer: str | None = None
    """bpe:512 or the path of a tokenizer's file. Default: each character is a token."""
    workers: Annotated[int, Also("jobs")] = 0
    """Processes that train at the same time, a run each, with the same results. Default: one for each core. Under
    mpiexec the ranks are these."""
    json: bool = False
    """Print one JSON object for each run instead of text."""
    columns: TextColumns = field(default_factory=Columns)

    def run(self) -> None:
        from chainrule.scaling.plan import Plan, check_text
        from chainrule.scaling.study import TABLE, Study, over_seeds
        from chainrule.tasks.language_modeling import LanguageModelingTask

        Check("scale run", self).at_least(0, "workers")
        plan = Plan.read(self.plan)
        with Progress("reading") as progress:
            corpus = cr.data.load(self.data, self.columns)
            say_reading(corpus.reading)
            named = self.tokenizer
            tokenizer = (
                None
                if named is None
                else LanguageModelingTask.learned(corpus, named) or cr.io.load_tokenizer(named)
            )
            study = Study(self.out, plan, corpus, tokenizer)
        for remark in check_text(study.plan, len(corpus.text)):
            progress.console.print(f"note: {remark}")
        total, failed = len(study.items()), []
        with Progress("training") as progress:

            def tell(made: Measured | str) -> None:
                if isinstance(made, str):
                    failed.append(made)
                    progress.console.print(f"failed: {made}")
                elif self.json:
                    print(json.dumps(made._asdict()), flush=True)
                else:
                    reached = f"loss {made.loss:.4f} ± {made.standard_error:.4f}   {made.seconds:.0f} s"
                    print(f"{made.name:<22} seed {made.seed}   {reached}", flush=True)

            try:
                found = study.run(self.workers or min(total, os.cpu_count() or 1), tell)
            except KeyboardInterrupt:
                progress.console.print("interrupted: call it again to continue where it stopped")
                raise SystemExit(130) from None
        if failed:
            raise Failure(
                f"scale run: {len(failed)} of {total} runs failed (see above; call it again to try them)"
            )
        if not self.json:
            if plan.config.seeds > 1:
                print("\n".join(in_words(over_seeds(found), plan.config.seeds, self.out)))
            table = self.out / TABLE
            again = command_line("scale", "fit", table, "--params", "params", "--tokens", "tokens")
            print(f"{len(found)} runs in {table}; fit them with: {again}")
