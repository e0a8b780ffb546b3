"""`chainrule eval`"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import chainrule as cr
from chainrule.cli.args.documents import say_reading
from chainrule.cli.args.options import Argument, Reporting, Without
from chainrule.cli.args.unused import refuse
from chainrule.cli.render import seeds
from chainrule.cli.render.confusion import by_label
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import used
from chainrule.cli.render.tables import show
from chainrule.columns import Columns
from chainrule.errors import ConfigError, Setting
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.runs.checkpoint import Checkpoint
    from chainrule.runs.load import Origin
    from chainrule.tasks.named import Data
    from chainrule.tasks.preferences.policy import PolicyTask

ALWAYS = ("run_folder", "data", "limit", "json")  # fields that mean something for every task
BATCH = 32  # of a model that comes without its training
COLUMNS = tuple(each.name for each in fields(Columns))


@dataclass(frozen=True)
class Command(Reporting):
    """Evaluate a model: its loss, bits per byte and perplexity, and how well it does its task.

    A language model is evaluated by its loss, a BERT by its masked words, a classifier by its accuracy and F1 with a
    confusion matrix, an encoder-decoder by exact answers and BLEU (with the extra `eval`). Without DATA the validation
    data of the run are used. With --choices a language model answers the questions in DATA: it takes the choice it
    finds most probable.

    Example: chainrule eval runs/reviews others.csv --text-column review --label-column stars --json
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run or of seeds, one of its checkpoints, or anything that `chainrule import` takes."""
    data: Annotated[str | None, Argument("DATA")] = None
    """Other data of the same kind; all of it is used. With --choices: a file of questions."""
    limit: int = 10_000
    """Windows, pairs, texts or questions at most."""
    batch_size: int | None = None
    """How many are evaluated at a time. Default: as many as in training, so that it gives the same number; else 32."""
    beam: int = 1
    """Of an encoder-decoder: width of the beam search for the answers that are scored, at most 1000; 1 takes the
    likeliest token again and again, as `chainrule sample` does."""
    columns: Annotated[Columns, Without(("other_column",))] = field(default_factory=Columns)
    choices: bool = False
    """DATA holds multiple-choice questions: .jsonl, .csv, .tsv or .parquet (docs/guide/generation.md)."""
    between: str = " "
    """With --choices: text between a question and an answer, by default a space."""

    def run(self) -> None:
        Check("eval", self).at_least(1, "limit", *(["batch_size"] if self.batch_size is not None else []))
        if members := cr.runs.seeds.folders(self.run_folder):
            self._over_seeds(members)
            return
        with Progress("evaluating") as progress:
            found = self._one(progress)
        used(self.run_folder)
        if self.json:
            show(found, True)
            return
        of_labels: dict[str, Any] = {
            name: found.pop(name) for name in ("labels", "mistakes", "confusion") if name in found
        }
        show(in_words(found), False)
        if of_labels:
            print("\n".join(by_label(of_labels)))

    def _one(self, progress: Progress) -> dict[str, Any]:
        return self._choose(progress) if self.choices else self._evaluate()

    def _over_seeds(self, members: Sequence[Path]) -> None:
        """Every run of a directory of seeds, and what they reach on average"""
        with Progress("evaluating") as progress:
            runs = {str(each): replace(self, run_folder=each)._one(progress) for each in members}
        names = [name for name, value in runs[str(members[0])].items() if isinstance(value, float)]
        spreads = {name: cr.runs.seeds.Spread.of([found[name] for found in runs.values()]) for name in names}

        def words() -> str:
            said = seeds.in_words(spreads, len(members), self.run_folder)
            if opened := [each["openings"] for each in runs.values() if "openings" in each]:
                said.append(f"openings  {openings_in_words(max(opened, key=lambda n: n or 0))}")
            return "\n".join(said)

        self.report(seeds.for_machines(spreads, runs, self.run_folder), words)

    def _choose(self, progress: Progress) -> dict[str, Any]:
        """How often the right choice is the one that the model expects most."""
        if self.data is None:
            raise ConfigError(
                "eval: ", Setting("choices"), " is given without DATA (must be a file of questions)"
            )
        why = "with choices (questions are read one by one: leave it out)"
        refuse("eval", self, why, but=(*ALWAYS, "choices", "between"))
        questions = cr.data.read_questions(Path(self.data))
        some = [questions[i] for i in cr.data.spread(len(questions), self.limit)]
        model, tokenizer = cr.runs.load_language_model(self.run_folder)

        def tell(done: int) -> None:
            progress.say(f"{done:,} of {len(some):,} questions")

        counted = self._open_test(hashlib.sha256(Path(self.data).read_bytes()).hexdigest())
        found = cr.generate.multiple_choice(model, tokenizer, some, self.between, tell=tell)
        return {"run": str(self.run_folder), "data": self.data} | found | counted

    def _evaluate(self) -> dict[str, Any]:
        from chainrule.data.read.again import as_before
        from chainrule.runs.load import (
            Origin,
            first_model,
            is_run,
            open_model,
            task_of_run,
            trained_on,
            unchanged,
        )
        from chainrule.tasks.preferences.policy import PolicyTask

        why = "without choices (must be with it, or left out)"
        refuse("eval", self, why, but=(*ALWAYS, "batch_size", "beam", *COLUMNS))
        if self.data is None and not is_run(self.run_folder):
            open_model(self.run_folder)  # which says what is no model at all
            raise ConfigError(f"{self.run_folder}: a model without its training (must be given data)")
        loaded = open_model(self.run_folder)
        model, tokenizer, saved = loaded
        kind = task_of_run(loaded)
        self._check_beam(kind)
        if saved and issubclass(kind, PolicyTask):
            return self._objective(saved, kind)
        origin, config = trained_on(saved, self.run_folder) if saved else (Origin(), cr.train.TrainConfig())
        own: dict[str, Any] = {}
        if self.data is None:
            self._no_columns()
            data = unchanged(self.run_folder, kind.find, origin)
            if saved:  # as it was evaluated in training
                own = {option: saved.training[option] for option in kind.options if option in saved.training}
        else:
            self._no_questions(kind, Path(self.data))
            data = kind.find(self.data, as_before(self.data, self.columns, origin.columns, origin.name))
            self._say_if_trained_on(data, origin)
        say_reading(getattr(data, "reading", None))
        if kind.from_start and saved:  # the same measure, on any data
            own = {option: saved.training[option] for option in kind.options if option in saved.training}
        task = kind.of(data, tokenizer, eval_only=self.data is not None, **own)
        task = (task.compared_with(first_model(self.run_folder)) if kind.from_start else task).fitted(model)
        if isinstance(task, cr.tasks.TranslationTask):
            task = replace(task, beam=self.beam)
        for size, value in task.sizes().items():
            known = getattr(model.config, size)
            padded = (
                size == "vocab_size" and known > value
            )  # more rows than tokens, to make them a round number
            if known not in (value, ()) and not padded:  # nor need a model know names of labels
                raise ConfigError(f"eval: {size} is {value} in the data, {known} in the model")
        at_once = self.batch_size or (config.batch_size if saved else BATCH)
        batches = task.eval_batches(model, batch_size=at_once, limit=self.limit)
        if kind is cr.tasks.LanguageModelingTask:
            self._say_if_short(model, batches)
        counted = {} if self.data is None or data.sha256 == origin.sha256 else self._open_test(data.sha256)
        with cr.autograd.precision(config.precision):
            found = task.evaluate(model, batches)
        share = task.share(model, batches)
        counts = {"evaluated": share.used, "available": share.total, "unit": share.unit}
        return {"run": str(self.run_folder), "data": self.data or origin.name} | counts | found | counted

    def _open_test(self, sha256: str) -> dict[str, Any]:
        """Count how often a run was evaluated on data that were held back from it."""
        from chainrule.runs.load import is_run

        if not is_run(self.run_folder):
            return {}
        return {"openings": cr.runs.RunFolder(self.run_folder).run.open_test(str(self.data), sha256)}

    def _objective(self, saved: Checkpoint, kind: type[PolicyTask]) -> dict[str, Any]:
        """What a policy reaches by the reward model of its training, on prompts that were held back or on others."""
        from chainrule.runs.load import run_of

        if any(saved.training.get(name) for name in kind.functions):
            rule = "a function of yours, which eval does not call: see the validation in its log.jsonl"
            raise ConfigError(f"eval: {self.run_folder} is evaluated by the reward of its training ({rule})")
        run = cr.runs.Run.restored(run_of(self.run_folder), saved)
        task: Any = run.task
        if self.data is not None:
            given = {"algorithm": task.algorithm, "reward": task.reward}
            others = kind.of(kind.find(self.data, self.columns), run.tokenizer, eval_only=True, **given)
            others = replace(others, settings=task.settings, reference=task.reference)
            task = others.fitted(run.model)
        batches = task.eval_batches(run.model, batch_size=BATCH, limit=self.limit)
        run.trainer.eval_batches = batches
        found = {"objective": -run.trainer.evaluate()} | dict(run.trainer.evaluation.scores())
        share = task.share(run.model, batches)
        counts = {"evaluated": share.used, "available": share.total, "unit": share.unit}
        return {"run": str(self.run_folder), "data": self.data or task.corpus.name} | counts | found

    def _no_questions(self, kind: type[cr.tasks.Task], path: Path) -> None:
        """A file of multiple-choice questions is not a text."""
        from chainrule.data.read.questions import are_questions
        from chainrule.data.read.tabular.table import is_table

        if (
            kind is cr.tasks.LanguageModelingTask
            and path.is_file()
            and is_table(path)
            and are_questions(path)
        ):
            rule = ("must be with ", Setting("choices"), ", or name a text with ", Setting("text_column"))
            raise ConfigError(f"{path}: has multiple-choice questions (", *rule, ")")

    def _no_columns(self) -> None:
        """The data of a run are read as when it began."""
        why = "without DATA (the run's own table is read as when it began: leave it out)"
        refuse("eval", self.columns, why)

    def _check_beam(self, kind: type[cr.tasks.Task]) -> None:
        """Only an encoder-decoder is evaluated by what it writes."""
        from chainrule.generate.beam import WIDEST

        if not issubclass(kind, cr.tasks.TranslationTask):
            why = f"for {kind.model} (must be an encoder-decoder: leave it out)"
            refuse("eval", self, why, but=(*ALWAYS, "batch_size", *COLUMNS))
        Check("eval", self).whole(1, WIDEST, "beam")

    def _say_if_trained_on(self, data: Data, origin: Origin) -> None:
        """The loss on texts that a model was trained on says little about what it can do."""
        same, file = data.sha256 == origin.sha256, data.name == origin.name
        if same or file:
            as_it_was = "" if same else ", as it was then"
            said = f"note: the model was trained on {self.data}{as_it_was}: it knows most of it"
            print(f"{said} (without DATA it is evaluated on what was held back)", file=sys.stderr)

    def _say_if_short(self, model: cr.models.Model, batches: cr.tasks.task.EvalBatches) -> None:
        """A text that is shorter than the context is evaluated as one window."""
        window = getattr(model, "training_window", 0)
        tokens = batches[0][1].shape[1] if batches and window else window
        if tokens < window:
            said = f"note: {tokens:,} tokens to predict, the context of the model is {window:,}: one partial window"
            print(said, file=sys.stderr)


def in_words(found: dict[str, Any]) -> dict[str, Any]:
    """The same for people: losses as training prints them, and what a number alone would not tell."""
    losses = [name for name in found if name.startswith("nats") or name == "bits_per_byte"]
    words = {name: f"{found[name]:.4f}" for name in losses}
    if "evaluated" in found:
        words["evaluated"] = str(
            cr.tasks.metrics.Share(found["evaluated"], found["available"], found["unit"])
        )
        found = {name: value for name, value in found.items() if name not in ("available", "unit")}
    if found.get("cut"):
        words["cut"] = (
            f"{found['cut']:,}: a side is longer than the context, and was read and scored up to there"
        )
    if "openings" in found:
        words["openings"] = openings_in_words(found["openings"])
    if found.get("bleu", 0) is None:
        words["bleu"] = "not known: sacrebleu is not installed (pip install 'chainrule[eval]')"
    return found | words


def openings_in_words(count: int | None) -> str:
    """How often a run was evaluated on the same test data."""
    if count is None:
        return "not counted: the directory of the run cannot be written to"
    often = "" if count == 1 else "; a choice made by it makes its result too good"
    return f"{count:,} of this data for this run{often}"
