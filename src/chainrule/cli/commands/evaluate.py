"""`chainrule eval`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from chainrule.autograd import precision
from chainrule.cli.args.options import Argument
from chainrule.cli.args.unused import given
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show
from chainrule.data import read_questions, spread
from chainrule.errors import ConfigError, Setting
from chainrule.generate import multiple_choice
from chainrule.runs.load import is_run, load_language_model, open_model, trained_on, unchanged
from chainrule.tasks.registry import task_of_model
from chainrule.train import TrainConfig
from chainrule.validate import Check

ALWAYS = ("run_folder", "data", "limit", "json")  # fields that mean something for every task


@dataclass(frozen=True)
class Command:
    """Evaluate a model: its loss, bits per byte and perplexity, and how well it does its task.

    A language model is evaluated by its loss, a BERT by its masked words, a classifier by its accuracy, an
    encoder-decoder by exact answers and BLEU (with the extra `eval`). Without DATA the validation data of the run are
    used. With --choices a language model answers the questions in DATA: it takes the choice it finds most probable.

    Example: chainrule eval runs/gpt other-book.txt --json
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run, one of its checkpoints, or anything that `chainrule import` takes."""
    data: Annotated[str | None, Argument("DATA")] = None
    """Other data of the same kind; all of it is used; with --choices a file of questions."""
    limit: int = 10_000
    """Windows, pairs, texts or questions at most."""
    batch_size: int = 32
    """How many are evaluated at a time."""
    choices: bool = False
    """DATA holds multiple-choice questions: .jsonl, .csv, .tsv or .parquet (docs/guide/generation.md)."""
    between: str = " "
    """With --choices: what stands between a question and an answer."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        Check("eval", self).at_least(1, "limit")
        with Progress("evaluating") as progress:
            found = self._choose(progress) if self.choices else self._evaluate()
        if self.json:
            print(json.dumps(found))
        else:
            show(found | in_words(found), as_json=False)

    def _choose(self, progress: Progress) -> dict[str, Any]:
        """How often the right choice is the one that the model expects most."""
        if self.data is None:
            said = " is given without DATA (must be a file of questions)"
            raise ConfigError("eval: ", Setting("choices"), said)
        for name in given(self, but=(*ALWAYS, "choices", "between")):
            said = " is given with choices (questions are read one by one: leave it out)"
            raise ConfigError("eval: ", Setting(name), said)
        questions = read_questions(Path(self.data))
        some = [questions[i] for i in spread(len(questions), self.limit)]
        model, tokenizer = load_language_model(self.run_folder)
        found = multiple_choice(
            model,
            tokenizer,
            some,
            self.between,
            tell=lambda done: progress.say(f"{done:,} of {len(some):,} questions"),
        )
        return {"run": str(self.run_folder), "data": self.data} | found

    def _evaluate(self) -> dict[str, Any]:
        for name in given(self, but=(*ALWAYS, "batch_size")):
            said = " is given without choices (must be with it, or left out)"
            raise ConfigError("eval: ", Setting(name), said)
        if self.data is None and not is_run(self.run_folder):
            raise ConfigError(f"{self.run_folder}: a model without its training (must be given data)")
        model, tokenizer, saved = open_model(self.run_folder)
        kind = task_of_model(model)
        name, sha256, config = (
            ("", "", TrainConfig()) if saved is None else trained_on(saved, self.run_folder)
        )
        other = self.data is not None
        data = kind.find(self.data) if self.data else unchanged(self.run_folder, kind.find, name, sha256)
        task = kind.of(data, tokenizer, eval_only=other).fitted(model)
        for size, value in task.sizes().items():
            if getattr(model.config, size) not in (value, ()):  # nor need a model know names of labels
                raise ConfigError(
                    f"eval: {size} is {value} in the data, {getattr(model.config, size)} in the model"
                )
        batches = task.eval_batches(model, batch_size=self.batch_size, limit=self.limit)
        with precision(config.precision):
            found = task.evaluate(model, batches)
        return {"run": str(self.run_folder), "data": self.data or name} | found


def in_words(found: dict[str, Any]) -> dict[str, str]:
    """What a number alone would not tell a person."""
    words = {}
    if found.get("cut"):
        words["cut"] = (
            f"{found['cut']:,}: a side is longer than the context, and was read and scored up to there"
        )
    if found.get("bleu", 0) is None:
        words["bleu"] = "not known: sacrebleu is not installed (pip install 'chainrule[eval]')"
    return words
