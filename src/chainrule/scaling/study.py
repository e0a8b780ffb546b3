"""A scaling study: every model of a plan trained as an ordinary run, and what they reached as one table.

    DIR/plan.json  DIR/runs.csv  DIR/C1e12-N116480/seed-0/ ...

Called again it continues where it stopped: runs that are finished are not trained again.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from rich.console import Console

from chainrule.data import Corpus
from chainrule.distributed import each
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.models import LanguageModel
from chainrule.runs import Run, RunFolder, load
from chainrule.runs.folder import check_empty
from chainrule.runs.records.seeds import Spread
from chainrule.scaling.plan import Plan, Planned
from chainrule.tasks.language_modeling import LanguageModelingTask
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.types import IGNORE

PLAN, TABLE = "plan.json", "runs.csv"
EVALUATED = 512  # windows of held-out text
WARMUP = 0.05  # of the steps


class Measured(NamedTuple):
    """A run of a study: a row of its table."""

    name: str
    seed: int
    budget: float
    params: int
    params_without_embedding: int
    tokens: int
    flops: float
    exact_flops: float
    lr: float
    batch_size: int
    loss: float
    standard_error: float
    """Of the held-out loss, over windows"""
    bits_per_byte: float
    seconds: float


@dataclass(frozen=True)
class Item:
    """A run to make, as a process of its own needs it."""

    folder: Path
    model: Planned
    seed: int
    corpus: Corpus
    tokenizer: Tokenizer | None

    @property
    def key(self) -> tuple[str, int]:
        return self.model.name, self.seed


def over_seeds(rows: Sequence[Measured]) -> dict[str, Spread]:
    """The mean loss of each model over its seeds, with its standard error"""
    losses: dict[str, list[float]] = {}
    for row in rows:
        losses.setdefault(row.name, []).append(row.loss)
    return {name: Spread.of(each) for name, each in losses.items()}


class Study:
    """A plan, a text, and a directory."""

    def __init__(
        self, folder: str | Path, plan: Plan, corpus: Corpus, tokenizer: Tokenizer | None = None
    ) -> None:
        vocabulary = (tokenizer or CharTokenizer.train(corpus.text)).vocab_size
        if plan.config.vocab_size != vocabulary:
            plan = Plan.of(replace(plan.config, vocab_size=vocabulary))  # sizes depend on it
        self.folder, self.plan, self.corpus, self.tokenizer = Path(folder), plan, corpus, tokenizer
        self._begin()

    def _begin(self) -> None:
        """Write the plan, or check that it is the one that began here"""
        said = json.dumps(
            self.plan.to_dict() | {"text": self.corpus.name, "sha256": self.corpus.sha256}, indent=1
        )
        file = self.folder / PLAN
        if not file.exists():
            check_empty(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            write(file, said.encode() + b"\n")
            return
        try:
            same = json.loads(file.read_bytes()) == json.loads(said)
        except (ValueError, RecursionError):
            same = False
        if not same:
            raise ConfigError(
                f"{self.folder}: holds a study of another plan or text (choose another directory)"
            )

    def items(self) -> list[Item]:
        """All runs, the cheapest budget first"""
        models = sorted(self.plan.models, key=lambda model: (model.budget, model.params))
        return [
            Item(self.folder / model.name / f"seed-{seed}", model, seed, self.corpus, self.tokenizer)
            for model in models
            for seed in range(self.plan.config.seeds)
        ]

    def run(
        self, workers: int = 1, tell: Callable[[Measured | str], None] = lambda said: None
    ) -> list[Measured]:
        """Train what is not finished; the table is written after each run. What fails is told, and left out."""
        items, found = self.items(), self._known()
        for made in found.values():
            tell(made)
        missing = [item for item in items if item.key not in found]
        for outcome in each(train, missing, workers):
            item = missing[outcome.number]
            if outcome.result is None:
                tell(f"{item.folder}: {outcome.error}")
                continue
            found[item.key] = outcome.result
            tell(outcome.result)
            self._write([found[item.key] for item in items if item.key in found])
        return [found[item.key] for item in items if item.key in found]

    def _known(self) -> dict[tuple[str, int], Measured]:
        """What the table holds already; one that cannot be understood is written anew"""
        file = self.folder / TABLE
        if not file.exists():
            return {}
        try:
            rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
            kinds = get_type_hints(Measured)
            made = [Measured(**{name: kinds[name](row[name]) for name in Measured._fields}) for row in rows]
        except (ValueError, KeyError, TypeError):
            return {}
        return {(row.name, row.seed): row for row in made}

    def _write(self, rows: list[Measured]) -> None:
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(Measured._fields)
        table.writerows(rows)
        write(self.folder / TABLE, text.getvalue().encode())


def train(item: Item) -> Measured:
    """Make a run, or resume it, or only read it if it is finished; and measure it"""
    model, files = item.model, RunFolder(item.folder)
    if files.saved():
        run = Run.resume(item.folder)
        if run.trainer.config.max_steps != model.steps:
            said = f"{item.folder}: a run of {run.trainer.config.max_steps:,} steps, not of {model.steps:,}"
            raise ConfigError(f"{said} (choose another directory)")
    else:
        steps = model.steps
        sizes: dict[str, Any] = model.sizes
        config = TrainConfig(
            max_steps=steps, batch_size=model.batch_size, lr=model.lr, warmup=max(1, round(WARMUP * steps)),
            eval_every=steps, save_every=max(steps, 1), keep="last", seed=item.seed,
        )  # fmt: skip
        run = Run.new(item.folder, item.corpus, config, "gpt", item.tokenizer, **sizes)
    if not run.finished and run.train(Console(quiet=True)).interrupted:
        raise KeyboardInterrupt
    trained: Any = load(item.folder)[0]
    task: Any = run.task
    loss, error = held_out(trained, task)
    return Measured(
        model.name, item.seed, model.budget, model.params, model.params_without_embedding, model.tokens, model.flops,
        model.exact_flops, model.lr, model.batch_size, loss, error, task.bits_per_byte(loss), run.trainer.seconds,
    )  # fmt: skip


def held_out(
    model: LanguageModel, task: LanguageModelingTask, windows: int = EVALUATED
) -> tuple[float, float]:
    """The mean loss on windows of the validation text, and its standard error over them"""
    means: list[float] = []
    with model.answering():
        for inputs, targets in task.eval_batches(model, batch_size=32, limit=windows):
            counts = (np.asarray(targets) != IGNORE).sum(axis=1)
            means += (-model.logprobs(inputs, targets).numpy().sum(axis=1) / counts).tolist()
    spread = float(np.std(means, ddof=1)) if len(means) > 1 else math.nan
    return float(np.mean(means)), spread / math.sqrt(len(means))
