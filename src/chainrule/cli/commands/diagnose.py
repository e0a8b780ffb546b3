"""`chainrule diagnose`"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.args.outputs import Folder
from chainrule.cli.render.findings import words
from chainrule.cli.render.progress import Progress
from chainrule.errors import ConfigError


@dataclass(frozen=True)
class Command:
    """Examine a run: its losses, activations, gradients and updates, what they mean and what to try.

    Without a run it examines a new GPT before its first step, on Python's documentation.

    Example: chainrule diagnose runs/demo --plot figures
    """

    run_folder: Annotated[Path | None, Argument("RUN")] = None
    """Directory of a run; its newest checkpoint is examined on a batch of its data."""
    json: bool = False
    """Print everything as one JSON object, histograms included."""
    plot: Annotated[Path | None, Folder] = None
    """Draw layers.png and parameters.png into this directory."""

    def run(self) -> None:
        with Progress("examining"):
            title, step, report = fresh() if self.run_folder is None else of_run(self.run_folder)
        if self.json:
            print(json.dumps({"model": title, "step": step, **report.to_dict()}))
        else:
            print(f"{title}, {f'after {step:,} steps' if step else 'before its first step'}\n")
            print("\n".join([*map(words, report.findings), "", *tables(report)]))
        if self.plot:
            draw(report, self.plot, quiet=self.json)


def fresh() -> tuple[str, int, cr.doctor.Report]:
    """A new GPT of default size on the default corpus."""
    text = cr.data.load("pydoc").text
    tokenizer = cr.text.CharTokenizer.train(text)
    with cr.random.seeded(0):
        model = cr.models.GPT(cr.models.GPTConfig(vocab_size=tokenizer.vocab_size))
    batches = cr.data.Batches(tokenizer.encode(text), batch_size=8, block_size=model.config.block_size)
    return _title(model), 0, cr.doctor.diagnose(model, batches.batch(0))


def of_run(folder: Path) -> tuple[str, int, cr.doctor.Report]:
    """The newest checkpoint of a run: the model on the batch that is next, its losses, and its log."""
    from chainrule.runs.records.review import of_losses

    run = cr.runs.Run.resume(folder)
    trainer = run.trainer
    step = trainer.steps
    if not trainer.on_batches:
        rule = "its answers are drawn in each step; see log.jsonl, or diagnose the run it began with"
        raise ConfigError(f"{folder}: learns from no batch that could be looked at ({rule})")
    lr = trainer.plan.lr(step) or trainer.config.lr  # at the end of a run it has fallen to 0
    report = cr.doctor.diagnose(
        trainer.model,
        trainer.batches.batch(step),
        optimizer=trainer.gradient.optimizer,
        lr=lr,
        step=step,
        clip=trainer.config.clip,
    )
    return _title(run.model), step, replace(report, findings=(*report.findings, *of_losses(run)))


def _title(model: Any) -> str:
    return f"{type(model).__name__} with {model.count():,} parameters"


def tables(report: cr.doctor.Report) -> list[str]:
    """Layers and matrices, a line each."""
    matrices = [p for p in report.parameters if len(p.shape) > 1]
    names = [layer.name for layer in report.layers] + [p.name for p in matrices]
    width = 2 + max(30, *map(len, names))
    lines = [f"{'layer':<{width}}{'spread':>10}{'gradient':>12}{'flat':>8}{'dead':>14}"]
    for layer in report.layers:
        grad = f"{layer.grad.std:.2e}" if layer.grad else "-"
        flat = "-" if layer.flat is None else f"{layer.flat:.1%}"
        dead = "-" if layer.flat is None else f"{len(layer.dead)} of {layer.units}"
        lines.append(f"{layer.name:<{width}}{layer.value.std:>10.4g}{grad:>12}{flat:>8}{dead:>14}")
    lines += ["", f"{'matrix':<{width}}{'length':>10}{'gradient':>12}{'next update / length':>22}"]
    for p in matrices:
        ratio = "-" if p.update_ratio is None else f"{p.update_ratio:.2e}"
        lines.append(f"{p.name:<{width}}{p.weight_norm:>10.4g}{p.grad_norm:>12.2e}{ratio:>22}")
    return lines


def draw(report: cr.doctor.Report, folder: Path, *, quiet: bool) -> None:
    """Draw layers.png and parameters.png."""
    from chainrule.cli.render.plots.canvas import save
    from chainrule.cli.render.plots.report import layers, parameters

    for name, function in (("layers", layers), ("parameters", parameters)):
        path = folder / f"{name}.png"
        save(function(report), path)
        if not quiet:
            print(path)
