"""`chainrule demo`: a language model from nothing, in about two minutes."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chainrule as cr
from chainrule.cli.render.show import command_line, size
from chainrule.errors import ChainruleError
from chainrule.validate import Check

# The lowest validation loss of six settings that were each given 160 seconds of one core, one seed each.
SIZE: dict[str, Any] = {"n_layer": 3, "n_head": 4, "n_embd": 96, "block_size": 64}
TRAINING: dict[str, Any] = {"batch_size": 16, "lr": 5e-3, "warmup": 50}
PROMPTS = ("The ", "If the ", "class ")
LENGTH = 250  # characters per sample


@dataclass(frozen=True)
class Command:
    """Train a small GPT on Python's own documentation, which every Python has, and see what it writes.

    Example: chainrule demo --minutes 1
    """

    minutes: float = 2.0
    """How long to train."""
    out: Path | None = None
    """Directory of the run. Default: runs/demo, or the next of runs/demo-2, runs/demo-3, ... that is free."""
    seed: int = 0
    """Seed of every random choice."""

    def run(self) -> None:
        Check("demo", self).duration("minutes", unit="minutes", seconds=60)
        corpus = cr.data.load("pydoc")
        config = cr.train.TrainConfig(budget=60 * self.minutes, seed=self.seed, **TRAINING)
        folder = self.out or Path("runs/demo")
        run = cr.runs.Run.new(folder, corpus, config, numbered=self.out is None, **SIZE)
        characters = f"{len(corpus.text):,} characters"
        with suppress(BrokenPipeError):  # the log notices it too, and saves the run
            print(f"Corpus  {characters} of Python's help topics ({corpus.version}), no download")
            print(f"Model   {size(run.model)}, weights random")
            print(f"Run     {run.folder}, {self.minutes:g} minutes of training; Ctrl-C ends it early\n")
        result = run.train()
        baselines = run.baselines()
        print_losses(result, baselines)
        print_samples(run, self.seed)
        draw(run, baselines)
        print_next(run)
        if result.interrupted:
            raise SystemExit(130)


def print_losses(result: cr.train.Result, baselines: dict[str, float]) -> None:
    names = {
        "uniform": "every character equally likely",
        "unigram": "counting characters",
        "bigram": "counting pairs of characters",
    }
    rows = [(names[name], loss) for name, loss in baselines.items()]
    rows.append((f"this model, {result.steps:,} steps in {result.seconds:.0f} s", result.validation))
    print("\nLoss per character on text it has not seen     nats   bits")
    for name, loss in rows:
        print(f"  {name:<40}  {loss:6.3f} {loss / math.log(2):6.3f}")


def print_samples(run: cr.runs.Run, seed: int) -> None:
    for prompt in PROMPTS:
        print(f"\n--- it continues {prompt!r}:\n{prompt}", end="", flush=True)
        for piece in cr.generate.write(run.model, run.tokenizer, prompt, LENGTH, seed=seed):
            print(piece, end="", flush=True)
        print()


def draw(run: cr.runs.Run, baselines: dict[str, float]) -> None:
    png = run.folder / "loss.png"
    try:
        cr.runs.loss_curve(run.files.log, png, baselines)
        print(f"\nLoss curve  {png}")
    except ChainruleError as error:  # no matplotlib: the demonstration does without the picture
        print(f"\n{error}")


def print_next(run: cr.runs.Run) -> None:
    print(f"Log         {run.files.log}\n")
    print("Try next")
    print(f"  {command_line('sample', run.folder, '--prompt', 'Python ', '--temperature', 0.5)}")
    print(f"  {command_line('train', 'gpt', 'YOUR_TEXT.txt', '--budget', 300)}")
    print(f"  {command_line('data', 'list')}")
