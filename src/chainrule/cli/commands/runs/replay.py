"""`chainrule replay`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.commands.diagnose import tables
from chainrule.cli.render.findings import words
from chainrule.cli.render.progress import Progress
from chainrule.errors import ConfigError, Setting
from chainrule.files import new_file

ROWS = 4  # of a batch that are shown


@dataclass(frozen=True)
class Command:
    """Repeat one step of a run exactly, and open it: its batch, activations, gradients and update.

    Example: chainrule replay runs/demo --step 812 --save step-812.npz
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run."""
    step: int
    """The step, from 1. Replays from the nearest checkpoint before it, or from the start."""
    save: Annotated[Path | None, NewFile] = None
    """Write all arrays to this .npz file: batch, activations, gradients, weights and updates."""
    json: bool = False
    """Print everything but the arrays as one JSON object."""

    def run(self) -> None:
        check_step(self.run_folder, self.step)
        with Progress("replaying") as progress:
            found = cr.runs.replay(
                self.run_folder, self.step, lambda done: progress.say(f"step {done:,} of {self.step:,}")
            )
            if self.save:
                with new_file(self.save) as file:
                    np.savez(file, **found.arrays())  # type: ignore[arg-type]
        if self.json:
            print(json.dumps(summary(found)))
            return
        print(
            f"step {found.step:,} of {found.run}: loss {found.loss:.6g}, gradient norm {found.norm:.4g}, "
            f"learning rate {found.lr:.4g}"
        )
        print(f"{verdict(found)}\n")
        print("\n".join([*rows(found), "", *map(words, found.report.findings), "", *tables(found.report)]))
        if self.save:
            print(f"\narrays in {self.save}: {', '.join(sorted({n.split('/')[0] for n in found.arrays()}))}")


def check_step(folder: Path, step: int) -> None:
    """A finished run has no step after its last; of any other, the one at which it stopped may be asked for."""
    made = cr.runs.History.of(folder)
    if made.state == "finished" and made.steps and not 1 <= step <= made.steps:
        said = f" is {step}, {folder} has the steps 1 to {made.steps} (choose one of them)"
        raise ConfigError("replay: ", Setting("step"), said)


def verdict(found: cr.runs.Replay) -> str:
    """Whether it is the step that was made then."""
    began = f"from the checkpoint of step {found.since:,}" if found.since else "from the seed"
    if found.differs is not None:
        return (
            f"NOT the same as in log.jsonl, from step {found.differs:,} on (replayed {began}): the code or the "
            "machine is another than that in environment.json"
        )
    if found.logged is None:
        return f"log.jsonl does not have this step (replayed {began})"
    return f"the same as in log.jsonl, bit for bit (replayed {began})"


def rows(found: cr.runs.Replay) -> list[str]:
    """The first rows of the batch in words."""
    lines = [f"batch of {len(found.texts)} rows"]
    for number, row in enumerate(found.texts[:ROWS]):
        lines += [
            f"  {number}  {name + ':':<8} {cr.tasks.answer_options.shorten(repr(text), 90)}"
            for name, text in row.items()
        ]
    return lines


def summary(found: cr.runs.Replay) -> dict[str, Any]:
    """A replay for machines."""
    plain = ("step", "since", "lr", "loss", "norm", "same", "differs", "texts")
    return {"run": str(found.run), **{name: getattr(found, name) for name in plain}, **found.report.to_dict()}
