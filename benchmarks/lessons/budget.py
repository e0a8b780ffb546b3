"""What runs on a time budget reach on many texts: the table of the law that forecasts it, and how often it is right.

    python -m benchmarks.lessons.budget fit src/chainrule/scaling/budget_runs.csv     texts that the law is fitted to
    python -m benchmarks.lessons.budget test benchmarks/results/budget.csv            texts that it has never seen

The texts are the built-in ones and those of $CHAINRULE_DATA. Sizes, rates and steps are those that `train --budget`
chooses on a machine of a stated speed, so that the table does not depend on the machine; each run is added to the table
as it ends, and called again the program continues. About eight CPU seconds for a run.
"""

from __future__ import annotations

import csv
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from benchmarks.harness import command_line, progress
from benchmarks.recipes.prose import read
from chainrule.data import Corpus, load
from chainrule.runs import Run
from chainrule.scaling.budget import Choice, choose, counted
from chainrule.scaling.laws.joint import FLOPS
from chainrule.train import Trainer
from chainrule.train.config import TrainConfig

FITTED = (
    "pydoc", "stdlib", "identifiers", "docstrings", "text/austen.txt", "text/jargon.txt", "text/moby_dick.txt",
    "text/tinyshakespeare.txt", "text/fortunes.txt", "text/tinystories_sample.txt", "text/austen.txt:100000",
    "stdlib:200000",
)  # fmt: skip
UNSEEN = (
    "text/sotu_1790_1989.txt", "text/wiki_demo.txt", "text/wikitext2_valid.txt", "parallel/multi30k/train.de.gz",
    "parallel/multi30k/train.fr.gz", "instruct/wordnet_definitions.tsv", "classify/ag_news_a.csv",
)  # fmt: skip
"""Running text; of sorted lists, such as names and dictionaries, no forecast is made"""
BUDGETS = ((2.0, 15e9), (10.0, 15e9), (60.0, 10e9))
"""Seconds, and multiply-adds and additions of a second"""
LENGTH = 4_000_000  # characters of a text, at most


class Reached(NamedTuple):
    """A run: a row of the table."""

    text: str
    characters: int
    single: float
    """Bits per byte of counts of single characters"""
    pair: float
    longest: float
    seconds: float
    params: int
    tokens: int
    epochs: float
    vocab_size: int
    bits_per_byte: float
    cpu_seconds: float


def corpus(name: str) -> Corpus:
    """A text by its name, or file of $CHAINRULE_DATA; NAME:N is its first N characters"""
    name, _, most = name.partition(":")
    text = read(Path(os.environ["CHAINRULE_DATA"]) / name) if "/" in name else load(name).text
    return Corpus(name, "file", text[: int(most or LENGTH)])


def reached(name: str, text: Corpus, counts: tuple[float, float, float], choice: Choice) -> Reached:
    """The run of a choice"""
    config = TrainConfig(**choice.training, max_steps=choice.steps)
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = Run.new(folder, text, config, "gpt", choice.tokenizer, **choice.sizes)
        result = run.train(Console(quiet=True))
        bits = run.task.measures(result.validation, run.trainer.eval_batches)["bits_per_byte"]
    tokens = choice.steps * config.batch_size * choice.sizes["block_size"]
    return Reached(
        name, len(text.text), *counts, choice.seconds, choice.parameters, tokens, choice.epochs,
        choice.tokenizer.vocab_size, bits, time.process_time() - began,
    )  # fmt: skip


def runs(names: tuple[str, ...], done: set[tuple[str, float]]) -> Iterator[Reached]:
    """All runs that are not done, the short ones first"""
    asked = [(name, *budget) for budget in BUDGETS for name in names]
    for name, seconds, speed in asked:
        if (name, seconds) not in done:

            def pace(trainer: Trainer, limit: float, speed: float = speed) -> float:
                return FLOPS * trainer.model.count() * trainer.batches.tokens / speed

            text = corpus(name)
            yield reached(name, text, counted(text), choose(text, seconds, pace=pace))


def main() -> None:
    asked = command_line(__doc__)
    asked.add_argument("texts", choices=("fit", "test"))
    asked.add_argument("table", type=Path)
    given = asked.parse_args()
    done: set[tuple[str, float]] = set()
    if given.table.exists():
        with given.table.open(encoding="utf-8", newline="") as file:
            done = {(row["text"], float(row["seconds"])) for row in csv.DictReader(file)}
    else:
        given.table.write_text(",".join(Reached._fields) + "\n", encoding="utf-8")
    for row in runs(FITTED if given.texts == "fit" else UNSEEN, done):
        with given.table.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)
        progress(f"{row.text}, {row.seconds:g} s: {row.bits_per_byte:.3f} bits per byte")


if __name__ == "__main__":
    main()
