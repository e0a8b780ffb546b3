"""`chainrule pipeline`"""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from chainrule.cli.args.options import Given
from chainrule.pipeline.config import QUICK, PipelineConfig


@dataclass(frozen=True)
class Command:
    """From a text to an aligned model: pretraining, continued pretraining, instruction tuning, preferences, reward
    model, PPO and DPO, on data that are built in, with a report of what each stage has changed.

    Each stage is an ordinary run in its own directory. Called again, it continues where it stopped.

    Example: chainrule pipeline --out runs/pipeline
    """

    out: Path = Path("runs/pipeline")
    """Directory for the runs and the report."""
    quick: bool = False
    """Tiny sizes and a few steps: seconds instead of ten minutes, and nothing is learned."""
    pipeline: PipelineConfig = field(default_factory=PipelineConfig)
    given: Given = field(default_factory=Given)

    def again(self) -> str:
        """What to type to continue, with all that was given: other settings would be refused."""
        from chainrule.cli.render.show import command_line

        said = {name: vars(self.pipeline)[name] for name in vars(self.pipeline) if name in self.given}
        flags = [f"--{name.replace('_', '-')} {value}" for name, value in said.items()]
        words = [*(["--quick"] if self.quick else []), *flags, f"--out {shlex.quote(str(self.out))}"]
        return f"{command_line()} pipeline {' '.join(words)}"

    def run(self) -> None:
        from chainrule.cli.render.progress import Progress
        from chainrule.pipeline import report, run_pipeline

        said = {name: value for name, value in vars(self.pipeline).items() if name in self.given}
        config = replace(QUICK if self.quick else PipelineConfig(), **said)
        with Progress("pipeline") as progress:

            def tell(words: str) -> None:
                if words[:1].isdigit():  # a stage begins
                    with suppress(BrokenPipeError):
                        print(words, flush=True)
                progress.turn(words) if words[:1].isdigit() else progress.say(words)

            try:
                run_pipeline(self.out, config, tell)
            except KeyboardInterrupt:
                print(f"interrupted; continue with: {self.again()}", file=sys.stderr)
                raise SystemExit(130) from None
            progress.turn("comparing the models")
            path = report(self.out, config)
        print(path)
