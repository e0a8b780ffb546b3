"""How a run went: its log, read again, and its newest checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chainrule.autograd import precision
from chainrule.doctor import Finding, rules
from chainrule.inspect import curve
from chainrule.inspect.generalization import SplitLosses
from chainrule.inspect.probe import untouched
from chainrule.runs.folder import RunFolder
from chainrule.runs.run import Run
from chainrule.train.log import read

CURVE = 10  # losses that have a shape
BATCHES = 8  # of the training data


def of_log(folder: Path, run: Run | None = None) -> list[Finding]:
    """The findings in the log and, with the settings of the run, those that follow from its losses."""
    records = read(RunFolder(folder).log)
    found = [(r["step"], Finding.from_dict(r["finding"])) for r in records if "finding" in r]
    if run is not None and run.trainer.on_batches:
        logged = {(step, code) for step, finding in found for code in finding.codes}
        recalled = run.trainer.monitor.recall(records)
        found += [(step, finding) for step, finding in recalled if (step, finding.code) not in logged]
    return [replace(f, measured=f"step {step}: {f.measured}") for step, f in found]


def of_both(run: Run) -> SplitLosses:
    """The validation loss that training and eval print, beside the loss on some batches of the training data."""
    trainer = run.trainer
    share = run.task.share(run.model, trainer.eval_batches)
    learner = trainer.model
    with untouched(learner), precision(trainer.config.precision), trainer.step.averaged():
        count = min(BATCHES, len(trainer.eval_batches))
        seen = learner.eval().mean_loss(map(trainer.batches.batch, range(count)))
        return SplitLosses(seen, learner.mean_loss(trainer.eval_batches), count, of=f" on {share}")


def of_losses(run: Run) -> list[Finding]:
    """Training and validation side by side, and the shape of the curve."""
    if not run.trainer.on_batches:  # losses of policy gradients go up and down by nature
        return []
    records = read(run.files.log)
    evaluated = [loss for record in records if (loss := record.get("validation")) is not None]
    losses = [loss for record in records if (loss := record.get("loss")) is not None]
    found = [rules.of_splits(of_both(run), trained=losses, evaluated=evaluated)]
    if len(losses) >= CURVE and (n_classes := run.trainer.model.n_classes):
        found.append(rules.of_curve(curve(losses, n_classes)))
    return found
