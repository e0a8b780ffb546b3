"""What a training ended with, for people and for machines."""

from __future__ import annotations

from typing import Any

import chainrule as cr
from chainrule.cli.render.show import bits, command_line, steps
from chainrule.train import Result
from chainrule.train.log import read, score_in_words


def in_words(run: cr.runs.Run, result: Result) -> list[str]:
    """The last loss, the best evaluation if another is used, and how it compares with baseline and forecast."""
    lines = [f"validation loss {bits(run, result.validation)} after {steps(result.steps)}"]
    best = run.trainer.best_so_far
    kept = run.trainer.config.keep == "best" and best.step >= 0
    if kept and best.step != result.steps:
        lines.append(
            f"best at step {best.step:,}, {bits(run, best.loss)}: sample, eval and export take that one"
        )
    if best.score is not None:
        lines.append(_compared(run, best.step, best.score))
    if run.forecast and (reached := run.task.measures(result.validation, run.trainer.eval_batches)):
        low, high = run.forecast
        lines.append(f"{reached['bits_per_byte']:.2f} bits per byte; expected {low:.2f} to {high:.2f}")
    return lines


def _compared(run: cr.runs.Run, step: int, score: float) -> str:
    """accuracy 90.3 % at step 640; bow-classifier: accuracy 88.6 %"""
    name = run.task.scored
    said = f"{score_in_words((name, score))} at step {step:,}"
    found: dict[str, Any] = next((r["baseline"] for r in read(run.files.log) if "baseline" in r), {})
    if name not in found:
        return said
    said += f"; {run.task.baseline}: {score_in_words((name, found[name]))}"
    other = ", or begin with a body that has read other texts (--init)" if run.from_seed else ""
    better = f"train {run.task.baseline}{other}"
    return said if score >= found[name] else f"{said}, which is better: {better}"


def next_command(run: cr.runs.Run) -> str:
    """What to do with a trained model."""
    use, verb = ("generate text with", "sample") if run.task.writes else ("evaluate it with", "eval")
    return f"{use}: {command_line()} {verb} {run.folder}"


def summary(run: cr.runs.Run, result: Result) -> dict[str, Any]:
    """A run in numbers; losses are of the validation text, the best one in the same unit as the last."""
    best = run.trainer.best_so_far
    found = {
        "run": str(run.folder),
        "model": run.family,
        "parameters": run.model.count(),
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        run.task.unit: result.validation,
        **run.task.measures(result.validation, run.trainer.eval_batches),
    }
    if best.known:
        found |= {"best_step": best.step, "best_loss": best.loss}
    if best.score is not None:
        found["best_score"] = best.score
    return {**found, "interrupted": result.interrupted}
