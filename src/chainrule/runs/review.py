"""How a run went: its log, read again, and its newest checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chainrule.doctor import Finding, limits, rules
from chainrule.inspect import curve, split_losses
from chainrule.runs.folder import RunFolder
from chainrule.runs.run import Run
from chainrule.train.log import read

CURVE = 10  # losses that have a shape
BATCHES = 8  # of each split, from all over it


def of_log(folder: Path, run: Run | None = None) -> list[Finding]:
    """The findings in the log and, with the settings of the run, those that follow from its losses."""
    records = read(RunFolder(folder).log)
    found = [(r["step"], Finding.from_dict(r["finding"])) for r in records if "finding" in r]
    if run is not None:
        logged = {(step, code) for step, finding in found for code in finding.codes}
        recalled = run.trainer.monitor.recall(records)
        found += [(step, finding) for step, finding in recalled if (step, finding.code) not in logged]
    return [replace(f, measured=f"step {step}: {f.measured}") for step, f in found]


def of_losses(run: Run) -> list[Finding]:
    """Training and validation side by side, and the shape of the curve."""
    trainer = run.trainer
    some = trainer.eval_batches[:: -(-len(trainer.eval_batches) // BATCHES)]
    records = read(run.files.log)
    evaluated = [loss for record in records if (loss := record.get("validation")) is not None]
    improving = bool(evaluated) and evaluated[-1] <= min(evaluated) * (1 + limits.RISEN)
    splits = split_losses(run.model, trainer.batches, some, len(some))
    found = [rules.of_splits(splits, improving=improving)]
    losses = [loss for record in records if (loss := record.get("loss")) is not None]
    if len(losses) >= CURVE and run.model.n_classes:
        found.append(rules.of_curve(curve(losses, run.model.n_classes)))
    return found
