"""How a run went: its log, read again, and its newest checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chainrule.doctor import Finding
from chainrule.doctor.nonfinite import broken
from chainrule.inspect import curve, split_losses
from chainrule.runs.folder import RunFolder
from chainrule.runs.run import Run
from chainrule.train.log import read

CURVE = 10  # losses that have a shape
BATCHES = 8  # of each split, from all over it


def of_log(folder: Path, run: Run | None = None) -> list[Finding]:
    """What was found in training and, with the settings of the run, what its log shows besides."""
    records = read(RunFolder(folder).log)
    found: dict[Finding, int] = {Finding(**r["finding"]): r["step"] for r in records if "finding" in r}
    if run is not None:
        for step, finding in run.trainer.doctor.recall(records):
            found.setdefault(finding, step)
    return [replace(f, measured=f"step {step}: {f.measured}") for f, step in found.items()]


def of_losses(run: Run) -> list[Finding]:
    """Training and validation side by side, and the shape of the curve."""
    trainer = run.trainer
    some = trainer.eval_batches[:: -(-len(trainer.eval_batches) // BATCHES)]
    found = [split_losses(run.model, trainer.batches, some, len(some)).finding]
    losses = [loss for record in read(run.files.log) if (loss := record.get("loss")) is not None]
    if len(losses) >= CURVE and run.model.choices:
        found.append(curve(losses, run.model.choices).finding)
    return found


def of_weights(run: Run) -> Finding:
    """Are all weights of the newest checkpoint numbers?"""
    entry = broken(run.model)
    if entry is None:
        return Finding(
            "ok", "weights", f"all {run.model.count():,} are finite", "The checkpoint can be used."
        )
    said = f"{entry.name}{list(entry.index)} is {entry.value}"
    return Finding("problem", "weights", said, "The model is broken.", "Resume from an earlier checkpoint.")
