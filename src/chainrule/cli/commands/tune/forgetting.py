"""`chainrule tune forgetting`"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument, Given, Reporting
from chainrule.cli.render.progress import Progress
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.train.config import Keeping, TrainConfig

if TYPE_CHECKING:
    from chainrule.lessons.forgetting import Outcome

REMEDIES = Keeping(tolerance=0.1, pull=0.01, replay_share=0.25)
DEFAULTS = TrainConfig(max_steps=300, warmup=20, eval_every=10, save_every=100)


@dataclass(frozen=True)
class Command(Reporting):
    """Tune a base with all its weights, with each remedy against forgetting, and with LoRA: what each learns of the new
    task, and what it forgets of the old one.

    Each way is a run of its own in the directory. Interrupted, the command continues where it was if it is given again.

    Example: chainrule tune forgetting runs/base new.txt --max-steps 300 --out runs/forgetting
    """

    base: Annotated[str, Argument("BASE")]
    """The model to tune, best a run whose data are still there."""
    data: Annotated[str, Argument("DATA")]
    """The new task."""
    out: Path = Path("runs/forgetting")
    """Directory for the runs, forgetting.json and forgetting.png."""
    rank: int = 8
    """Of LoRA."""
    keeping: Keeping = field(default_factory=lambda: REMEDIES)
    training: TrainConfig = field(default_factory=lambda: DEFAULTS)
    given: Given = field(default_factory=Given)

    def run(self) -> None:
        training = self.training
        if "lr" not in self.given:  # high, so that there is something to see
            training = replace(training, lr=cr.runs.warm_start.Start.open(self.base).lr)
        self.out.mkdir(parents=True, exist_ok=True)
        from rich.console import Console

        from chainrule.lessons.forgetting import compare

        log = Console(stderr=True, highlight=False, quiet=True)  # of each run there is a log
        with Progress("tuning") as progress:
            ways = compare(
                self.base, self.data, self.out, training, self.keeping, self.rank, progress.say, log
            )
            found = list(ways)
        self._write(found)
        if self.json:
            print(json.dumps({"out": str(self.out), "outcomes": [each.to_dict() for each in found]}))
            return
        print(f"{'':<16}{'step':>6}{'new task':>20}{'gain':>9}{'old task':>20}{'rise':>9}")
        for each in found:
            new, old = (
                f"{a:.4f} -> {b:.4f}"
                for a, b in ((each.task_before, each.task_after), (each.general_before, each.general_after))
            )
            print(f"{each.name:<16}{each.step:>6,}{new:>20}{each.gain:>9.4f}{old:>20}{each.rise:>+9.4f}")
        for each in found:
            if not each.step:
                rose = f"rose by more than {self.keeping.tolerance:g} before the first look at it"
                print(f"{each.name}: the old task {rose} (a larger --tolerance, or a smaller --eval-every)")
        print(f"{self.out}/forgetting.json, forgetting.png")

    def _write(self, found: list[Outcome]) -> None:
        from chainrule.cli.render.plots.canvas import save
        from chainrule.cli.render.plots.forgetting import forgetting

        record = json.dumps([each.to_dict() for each in found], indent=1)
        write(self.out / "forgetting.json", f"{record}\n".encode())
        try:
            save(forgetting(found, Path(self.data).name, "the old task"), self.out / "forgetting.png")
        except ConfigError as error:  # everything but the picture is there
            print(f"no picture: {error}", file=sys.stderr)
