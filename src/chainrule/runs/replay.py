"""One step of a run once more, opened: its batch, activations, gradients and update.

Nothing of it was kept. But a step depends on the weights, the optimizer and its number alone (train/step.py), so the
nearest checkpoint before it, or the seed, and the learning rates in the log give every step again to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from chainrule import random
from chainrule.autograd import Param, capture
from chainrule.autograd.types import Array
from chainrule.doctor import Report, rules
from chainrule.errors import CheckpointError, ConfigError, Setting
from chainrule.inspect import LayerReport, ParameterReport, expected_loss
from chainrule.inspect.activations import ACTIVATIONS, STREAM, layers
from chainrule.inspect.gradients import norm
from chainrule.inspect.losses import OUTPUTS, captured_entropy
from chainrule.inspect.probe import calls
from chainrule.machine import one_blas_thread
from chainrule.models import IGNORE
from chainrule.models.microbatch import named
from chainrule.runs import checkpoint
from chainrule.runs.folder import RunFolder
from chainrule.runs.load import load_checkpoint
from chainrule.runs.run import Run
from chainrule.tasks.setup import Setup
from chainrule.text import Tokenizer
from chainrule.train.log import read
from chainrule.train.skips import Skips

Names = dict[str, Array]
TOKENS = ("ids", "source", "target")  # fields of inputs that are texts


@dataclass(frozen=True)
class Replay:
    """A step, with everything that went through it."""

    run: Path
    step: int
    since: int
    """The step of the checkpoint from which it was reached; 0 is the seed."""
    lr: float
    loss: float
    norm: float
    """Of the gradient before it was clipped."""
    logged: dict[str, Any] | None
    """What log.jsonl says of the step; nothing if training stopped before it could be written."""
    differs: int | None
    """The first step, on the way or this one, whose loss or norm is not that of the log to the last bit."""
    texts: list[dict[str, str]]
    """The batch, row by row."""
    report: Report
    inputs: Any = field(repr=False)
    targets: Array = field(repr=False)
    activations: Names = field(repr=False)
    activation_gradients: Names = field(repr=False)
    weights: Names = field(repr=False)
    """Before the step."""
    gradients: Names = field(repr=False)
    """As the optimizer took them, clipped."""
    updates: Names = field(repr=False)

    @property
    def same(self) -> bool:
        """The loss and the norm are those of the log, bit for bit, in every step since the checkpoint."""
        return self.logged is not None and self.differs is None

    def arrays(self) -> Names:
        """Everything by name, as it is saved: `gradient/wte.weight`."""
        groups: dict[str, Any] = {
            "batch": named(self.inputs) | {"targets": self.targets},
            "activation": self.activations, "activation_gradient": self.activation_gradients,
            "weight": self.weights, "gradient": self.gradients, "update": self.updates,
        }  # fmt: skip
        return {f"{group}/{name}": array for group, each in groups.items() for name, array in each.items()}


def replay(folder: str | Path, step: int, tell: Callable[[int], object] = lambda done: None) -> Replay:
    """Replay step `step` of a run; `tell` is called with every step on the way to it.

    >>> import chainrule as cr
    >>> cr.runs.replay("runs/mine", 812).report.problems  # doctest: +SKIP
    """
    folder = Path(folder)
    files = RunFolder(folder)
    files.refuse_checkpoint()
    records = {record["step"]: record for record in read(files.log) if "loss" in record}
    run = _run_before(folder, step, max(records, default=0))
    trainer = run.trainer
    if not trainer.on_batches:
        rule = "resume the run from an earlier checkpoint to see it again"
        raise ConfigError(f"{folder}: a step is a rollout and several updates, not one batch ({rule})")
    trainer.config = replace(trainer.config, on_nan="skip")  # a step that broke the run is the one to look at
    since, differs = trainer.steps, None
    with random.seeded(trainer.config.seed), one_blas_thread():
        while trainer.steps < step - 1:
            trainer.gradient.skips = Skips()  # the limit is for training
            found = trainer.update(_rate(run, records))
            differs = differs or _differs(trainer.steps, found, records)
            tell(trainer.steps)
        trainer.gradient.skips = Skips()
        return _open(run, records, since, differs)


def _run_before(folder: Path, step: int, last: int) -> Run:
    """The run at the nearest checkpoint before a step; without one, as its seed makes it."""
    newest = load_checkpoint(folder)
    most = max(last, newest.step) + 1  # the step at which training stopped was perhaps not written down
    if not 1 <= step <= most:
        said = f" is {step}, {folder} has the steps 1 to {most} (choose one of them)"
        raise ConfigError("replay: ", Setting("step"), said)
    saved = checkpoint.before(folder, step)
    if saved is not None:
        return Run.restored(folder, saved)
    run = Run.restored(folder, newest)
    if not run.from_seed:
        raise CheckpointError(
            f"{folder}: no good checkpoint before step {step}, and the run began with the weights of another model "
            "(choose a later step)"
        )
    with random.seeded(run.trainer.config.seed):
        model = type(run.model)(run.model.config)
        run.task.prepare(model)
    return Run(folder, Setup.of(run.task, model, run.trainer.config), run.trainer.config)


def _rate(run: Run, records: dict[int, dict[str, Any]]) -> float:
    """Of the step that comes next: as it was, which after an extension is not what the plan says now."""
    logged = records.get(run.trainer.steps + 1, {})
    return float(logged["lr"]) if "lr" in logged else run.trainer.plan.lr(run.trainer.steps)


def _differs(step: int, found: tuple[float, float], records: dict[int, dict[str, Any]]) -> int | None:
    """The step, if its numbers are not those in the log; null stands for what is not finite."""
    if step not in records:
        return None
    logged = records[step].get("loss"), records[step].get("norm")
    return None if logged == tuple(value if np.isfinite(value) else None for value in found) else step


def _open(run: Run, records: dict[int, dict[str, Any]], since: int, differs: int | None) -> Replay:
    """Make the next step and keep what goes through it."""
    trainer, params = run.trainer, _named(run)
    lr, (inputs, targets) = _rate(run, records), trainer.batches.batch(trainer.steps)
    weights = {name: param.array.copy() for name, param in params.items()}
    with capture(*calls(*ACTIVATIONS, STREAM)) as seen, capture(*calls(*OUTPUTS)) as outputs:
        loss, size = trainer.update(lr)
    trainer.gradient.share.complete()
    gradients = {
        name: np.zeros_like(p.array) if p.grad is None else p.grad.copy() for name, p in params.items()
    }
    updates = {name: param.array - weights[name] for name, param in params.items()}
    step = trainer.steps
    return Replay(
        run=run.folder, step=step, since=since, lr=lr, loss=loss, norm=size,
        logged=records.get(step),
        differs=differs or _differs(step, (loss, size), records),
        texts=_texts(run.tokenizer, inputs, targets),
        report=_report(run, loss, captured_entropy(outputs), layers(seen), weights, gradients, updates),
        inputs=inputs, targets=targets,
        activations={name: entry.value for name, entry in seen.items()},
        activation_gradients={name: e.grad for name, e in seen.items() if e.grad is not None},
        weights=weights, gradients=gradients, updates=updates,
    )  # fmt: skip


def _named(run: Run) -> dict[str, Param]:
    """All parameters, by the names of the run's model; what is around it in training by names of its own."""
    inside = dict(run.model.named_parameters())
    known = {id(param) for param in inside.values()}
    others = run.trainer.gradient.optimizer.params.items()
    return inside | {name: param for name, param in others if id(param) not in known}


def _report(
    run: Run,
    loss: float,
    entropy: float | None,
    found: list[LayerReport],
    weights: Names,
    gradients: Names,
    updates: Names,
) -> Report:
    """The step in the words of `chainrule diagnose`."""
    trainable = [name for name, param in _named(run).items() if param.requires_grad]
    params = [
        ParameterReport(
            name, weights[name].shape, norm(weights[name]), norm(gradients[name]), norm(updates[name])
        )
        for name in trainable
    ]
    fresh, clip = run.trainer.steps == 1, run.trainer.config.clip
    said = [*rules.of_layers(found, fresh=fresh, clip=clip), *rules.of_parameters(params)]
    V = getattr(run.model.config, "vocab_size", None)
    expected = expected_loss(V) if V else None
    return Report(loss, expected, entropy, tuple(found), tuple(params), tuple(said))


def _texts(tokenizer: Tokenizer, inputs: Any, targets: Array) -> list[dict[str, str]]:
    """The rows of a batch: what is read, and what is to be said."""
    fields = named(inputs)
    rows = []
    for number, wanted in enumerate(targets):
        row = {}
        for name in (name for name in TOKENS if name in fields):
            key, mask_key = ("text", "mask") if name == "ids" else (name, f"{name}_mask")
            ids, mask = fields[name][number], fields.get(mask_key)
            row[key] = tokenizer.decode(ids.reshape(-1) if mask is None else ids[mask[number]])
        wanted = np.atleast_1d(wanted)
        label = targets.ndim == 1 and not isinstance(inputs, np.ndarray)  # a class, not a token
        kept = wanted[wanted != IGNORE]
        row["wanted"] = " ".join(map(str, kept)) if label else tokenizer.decode(kept)
        rows.append(row)
    return rows
