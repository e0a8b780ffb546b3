"""A training by command: what is said before it, while it lasts, and of its result."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chainrule.runs import Run


class Asked(Protocol):
    """The options of a command that trains."""

    @property
    def resume(self) -> Path | None: ...
    @property
    def json(self) -> bool: ...
    @property
    def say(self) -> Callable[[str], None]: ...


def train(run: Run, asked: Asked, *, alone: bool = True) -> None:
    """Train a run, new or resumed, and say what it reached; with `alone` the summary for machines is of it."""
    from rich.console import Console

    from chainrule.cli.args.runs.resume import command_for, continuation, remedy, renew_settings
    from chainrule.cli.render.result import in_words, next_command, summary
    from chainrule.cli.render.show import size
    from chainrule.distributed import world
    from chainrule.train.skips import Diverged

    asked.say(f"{size(run.model)}, {run.task.amount()}; run {run.folder}")
    if asked.resume:
        renew_settings(run)
        asked.say(continuation(run))
    if not world().first:  # the first rank logs, saves and speaks
        raise SystemExit(130 if run.train().interrupted else 0)
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
