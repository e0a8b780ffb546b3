"""`chainrule tune compare`"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import chainrule as cr
from chainrule.cli.args.documents import ChatColumns
from chainrule.cli.args.options import Argument
from chainrule.cli.render.progress import Progress
from chainrule.columns import Columns
from chainrule.validate import Check


@dataclass(frozen=True)
class Command:
    """What tuning has changed: the probability of right answers, and the rates of four groups of behavior.

    The groups are format, task, helpfulness and refusal; each has a rule, which is printed. Answers are the likeliest
    tokens. A model without a chat template is asked as a play with two speakers.

    Example: chainrule tune compare runs/base runs/tuned chats.jsonl
    """

    before: Annotated[Path, Argument("BEFORE")]
    """The base: a run, or anything that `chainrule import` takes."""
    after: Annotated[Path, Argument("AFTER")]
    """The tuned model."""
    file: Annotated[str | None, Argument("FILE")] = None
    """Conversations whose answers are right, best those that were held back. Default: none, only behavior."""
    limit: int = 100
    """Conversations of FILE to measure, from those that are held back in training."""
    max_new_tokens: int = 60
    """Longest answer."""
    columns: ChatColumns = field(default_factory=Columns)
    json: bool = False
    """Print one JSON object, with all answers."""

    def run(self) -> None:
        from chainrule.align.behavior import behaviors, changes, summary

        Check("compare", self).at_least(1, "limit", "max_new_tokens")
        models = {name: cr.runs.load_language_model(getattr(self, name)) for name in ("before", "after")}
        found: dict[str, Any] = {}
        with Progress("comparing") as progress:
            if self.file is not None:
                held_out = cr.data.load_conversations(self.file, self.columns).parts()[1]
                talks = [held_out[i] for i in cr.data.spread(len(held_out), self.limit)]
                each = changes(models["before"], models["after"], talks)
                found["answers"] = summary(each) | {"each": [change._asdict() for change in each]}
            for name, model in models.items():
                progress.say(f"behavior {name}")
                results = behaviors(*model, max_new_tokens=self.max_new_tokens)
                found[name] = {
                    group: {"rule": result.rule, "passed": result.passed, "of": result.of}
                    | {"replies": [reply._asdict() | {"passed": passed} for reply, passed in result.replies]}
                    for group, result in results.items()
                }
        print(json.dumps(found, ensure_ascii=False) if self.json else "\n".join(in_words(found)))


def in_words(found: dict[str, Any]) -> list[str]:
    """For people: the answers that changed most, and the rates."""
    from chainrule.tasks.answer_options import shorten  # the help is there without it

    lines = []
    if "answers" in found:
        about = found["answers"]
        mean = f"mean ln P(answer | question) {about['before']:.2f} before, {about['after']:.2f} after"
        lines += [f"{about['likelier']} of {about['answers']} answers became likelier; {mean}"]
        most = sorted(about["each"], key=lambda change: change["before"] - change["after"])[:3]
        for change in most:
            odds = f"{math.exp(change['before']):.2g} -> {math.exp(change['after']):.2g}"
            lines.append(f"  {odds:<20} {shorten(change['question'], 40)} {shorten(change['answer'], 30)}")
    lines.append(f"{'behavior':<12} {'before':>8} {'after':>8}  passes if the answer")
    for group, result in found["after"].items():
        rates = (f"{found[name][group]['passed']}/{result['of']}" for name in ("before", "after"))
        lines.append("{:<12} {:>8} {:>8}  {}".format(group, *rates, result["rule"]))
    return lines
