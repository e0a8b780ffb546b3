"""`chainrule doctor`"""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.documents import say_reading
from chainrule.cli.args.options import Argument, Reporting, Without
from chainrule.cli.args.unused import refuse
from chainrule.cli.render.findings import words
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line, size, steps
from chainrule.cli.render.tables import show
from chainrule.columns import Columns
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Describe this machine as Chainrule sees it: CPU, threads, native kernels, versions.

    With a run: how its training went, from its log and newest checkpoint. With data: what a model of a family would
    meet in them, before any step, and whether it can overfit one batch; of a table also what its columns hold.

    Example: chainrule doctor reviews.csv --family bert-classifier --text-column review --label-column stars
    """

    subject: Annotated[str | None, Argument("RUN|DATA")] = None
    """Directory of a run, or what `chainrule train` takes: a text file, a corpus, a directory of shards."""
    family: str = "gpt"
    """Family of the model that the data are for."""
    tokenizer: str | None = None
    """Tokenizer for the data, as `chainrule train` takes it: a file, or bpe:4000. Default: that of the family."""
    columns: Annotated[Columns, Without(("other_column",))] = field(default_factory=Columns)

    def run(self) -> None:
        of_data = self.subject is not None and not cr.runs.RunFolder(Path(self.subject)).log.exists()
        if not of_data:
            refuse(
                "doctor",
                self,
                "without data (name the data to examine, or leave it out)",
                but=("subject", "json"),
            )
        if self.subject is None:
            show(report(), self.json)
            return
        with Progress("examining") as progress:
            if of_data:
                cr.runs.RunFolder(Path(self.subject)).refuse_model()
                title, findings = self._of_data(self.subject, progress)
            else:
                title, findings = of_run(Path(self.subject))
        if self.json:
            print(json.dumps({"of": title, "findings": [finding.to_dict() for finding in findings]}))
        else:
            print("\n".join([title, "", *map(words, findings)]))

    def _of_data(self, name: str, progress: Progress) -> tuple[str, list[cr.doctor.Finding]]:
        from chainrule.cli.render.columns import overview
        from chainrule.data.read.tabular.table import Table, is_table
        from chainrule.tasks.registry import TASKS
        from chainrule.train.trials import overfit

        # Word vectors read all data in each step: there are no batches to look at.
        Check("doctor", self).one_of("family", [each for each, task in TASKS.items() if not task.by_epoch])
        if Path(name).is_file() and is_table(Path(name)):
            print("\n".join(overview(Table.open(Path(name), self.columns))), file=sys.stderr)
        run = cr.runs.Run.new(
            "", name, cr.train.TrainConfig(), self.family, self.tokenizer, columns=self.columns, draft=True
        )
        say_reading(getattr(run.corpus, "reading", None))
        findings = [*run.trainer.examine(), overfit(run.trainer, said=progress.say)]
        return f"{size(run.model)}, {run.task.amount()}", findings


def of_run(folder: Path) -> tuple[str, list[cr.doctor.Finding]]:
    """How the training went, and its newest checkpoint; `chainrule diagnose` looks inside the model."""
    from chainrule.doctor.explain import of_weights
    from chainrule.runs.records.review import of_log, of_losses

    if not cr.runs.RunFolder(folder).saved():
        return f"{folder}: a run without a checkpoint", of_log(folder)
    run = cr.runs.Run.resume(folder)
    findings = [*of_log(folder, run), *of_losses(run), of_weights(run.model)]
    about = f"{size(run.model)}, {run.task.amount()}, after {steps(run.trainer.steps)}"
    return f"{about}; for its inside: {command_line('diagnose', folder)}", findings


def report() -> dict[str, str]:
    """What there is, by name."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    on = f"on, ISA {cr.native.isa()} (of {', '.join(cr.native.isas())})"
    return {
        "chainrule": cr.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "cpu": _cpu(),
        "threads": f"{cr.native.get_threads()} of {os.cpu_count()} (set with CHAINRULE_THREADS)",
        "native": on if cr.native.available() else f"off, NumPy does the work: {cr.native.why_missing()}",
        "blas": f"{blas.get('name')} {blas.get('version')}",
        **{name: _version(name) for name in ("numpy", "safetensors", "rich", "matplotlib")},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    """The name of the processor; Linux keeps it in a file, elsewhere platform knows it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
