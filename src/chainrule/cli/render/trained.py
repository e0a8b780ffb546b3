"""A run that is trained by command: what is said before, and of what it reached."""

from __future__ import annotations

import json
from contextlib import suppress

from rich.console import Console

from chainrule.cli.args.resume import command_for, continuation, remedy, renew_settings
from chainrule.cli.args.training import Says
from chainrule.cli.render.result import in_words, next_command, summary
from chainrule.cli.render.show import size
from chainrule.runs import Run
from chainrule.train.skips import Diverged


def train(run: Run, asked: Says, *, resumed: bool, alone: bool = True) -> None:
    """Train a run and say what it reached; with `alone` the summary for machines is of it."""
    asked.say(f"{size(run.model)}, {run.task.amount()}; run {run.folder}")
    if resumed:
        renew_settings(run)
        asked.say(continuation(run))
    try:
        result = run.train(Console(stderr=asked.json, highlight=False))
    except Diverged as error:
        raise Diverged(*error.args, remedy(run)) from error
    said = json.dumps(summary(run, result)) if asked.json else "\n".join(in_words(run, result))
    if asked.json and not alone:
        said = ""  # of several seeds there is one summary, at the end
    if result.interrupted:
        with suppress(OSError):  # of a terminal that was closed
            print(said, end="\n" * bool(said))
            saved = f"interrupted after step {result.steps:,}, which is saved"
            asked.say(f"{saved}; resume with: {command_for(run)}")
        raise SystemExit(130)
    print(said, end="\n" * bool(said))
    if not asked.json and alone:
        print(next_command(run))
