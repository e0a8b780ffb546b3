"""What a training ended with, for people and for machines."""

from __future__ import annotations

from typing import Any

import chainrule as cr
from chainrule.cli.render.show import bits, command_line, steps
from chainrule.train import Result
from chainrule.train.log import read, score_in_words

FAR = 1.25  # times as many steps as were forecast, or as many times fewer: worth a word


def in_words(run: cr.runs.Run, result: Result) -> list[str]:
    """The last loss, the best evaluation if another is used, and how it compares with baseline and forecast."""
    share = run.task.share(run.model, run.trainer.eval_batches)
    some = f", on {share}" if share.partial else ""
    lines = [f"validation loss {bits(run, result.validation)} after {steps(result.steps)}{some}"]
    best = run.trainer.best_so_far
    kept = run.trainer.config.keep == "best" and best.step >= 0
    if kept and best.step != result.steps:
        by = "" if best.score is None else f" by {run.task.scored}"
        among = " of the evaluations" if result.interrupted else ""  # the last loss was measured after them
        said = f"best{by}{among} at step {best.step:,}, {bits(run, best.loss)}"
        lines.append(f"{said}: sample, eval and export take that one")
    if general := run.trainer.general:
        now = "" if general.last is None else f", {general.last:.4f} at the last evaluation"
        lines.append(f"loss on the old task: {general.before:.4f} before tuning{now}")
    if best.score is not None:
        lines.append(_scored(run, best.step, best.score, compared=not result.interrupted))
    if result.interrupted:  # half a training is not compared with what was forecast of a whole one
        return lines
    if run.forecast and (reached := run.task.measures(result.validation, run.trainer.eval_batches)):
        low, high, planned = run.forecast
        said = f"{reached['bits_per_byte']:.2f} bits per byte; expected {low:.2f} to {high:.2f}"
        if not 1 / FAR < result.steps / planned < FAR:
            said += f" after {planned:,} steps (the pace of the machine has changed)"
        lines.append(said)
    return lines


def _scored(run: cr.runs.Run, step: int, score: float, *, compared: bool) -> str:
    """accuracy 90.3 % at step 640; and compared: bow-classifier: accuracy 88.6 %"""
    name = run.task.scored
    said = f"{score_in_words((name, score))} at step {step:,}"
    found: dict[str, Any] = next((r["baseline"] for r in read(run.files.log) if "baseline" in r), {})
    if name not in found or not compared:
        return said
    said += f"; {run.task.baseline}: {score_in_words((name, found[name]))}"
    other = ", or begin with a body that has read other texts (--init)" if run.from_seed else ""
    better = f"train {run.task.baseline}{other}"
    return said if score >= found[name] else f"{said}, which is better: {better}"


def next_command(run: cr.runs.Run) -> str:
    """What to do with a trained model."""
    if isinstance(run.model, cr.models.EncoderDecoder):
        return f'translate with: {command_line("sample", run.folder)} --prompt "TEXT"'
    use, verb = ("generate text with", "sample") if run.task.writes else ("evaluate it with", "eval")
    if run.task.talks:
        use, verb = "talk with it", "chat"
    return f"{use}: {command_line(verb, run.folder)}"


def summary(run: cr.runs.Run, result: Result) -> dict[str, Any]:
    """A run in numbers; losses are of the validation text, the best one in the same unit as the last."""
    best, share = run.trainer.best_so_far, run.task.share(run.model, run.trainer.eval_batches)
    found = {
        "run": str(run.folder),
        "model": run.family,
        "parameters": run.model.count(),
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        run.task.unit: result.validation,
        **run.task.measures(result.validation, run.trainer.eval_batches),
        "evaluated": share.used,
        "available": share.total,
    }
    if best.known:
        found |= {"best_step": best.step, "best_loss": best.loss}
    if best.score is not None:
        found["best_score"] = best.score
    if general := run.trainer.general:
        found |= {"general_before": general.before, "general_after": general.last}
    return {**found, "interrupted": result.interrupted}
