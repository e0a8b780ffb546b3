"""`chainrule train word2vec`"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import chainrule as cr
from chainrule.cli.args.families import TEXT, without
from chainrule.cli.args.options import Argument, Given, Without
from chainrule.cli.args.runs.training import Speaking
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line
from chainrule.columns import Columns
from chainrule.models.word2vec import Word2VecConfig
from chainrule.train.config import WordTrainConfig


@dataclass(frozen=True)
class Command(Speaking):
    """Learn a vector for each word of a text, with word2vec.

    Example: chainrule train word2vec book.txt --dim 100 --epochs 5 --out runs/words
    """

    data: Annotated[str, Argument("DATA")] = "pydoc"
    """A text file, a table with a column of texts, or a corpus that `chainrule data list` knows."""
    out: Path | None = None
    """Directory of the run. Default: runs/word2vec, or the next of runs/word2vec-2, ... that is free."""
    resume: Path | None = None
    """Resume this run, with its data and settings, after its last whole epoch."""
    model: Literal["skip-gram", "cbow"] = "skip-gram"
    """skip-gram: a word predicts its neighbors. cbow: the mean of the neighbors predicts the word."""
    dim: int = Word2VecConfig.dim
    """Length of a word's vector."""
    window: int = Word2VecConfig.window
    """Farthest neighbor, in words to either side."""
    min_count: int = 5
    """Leave out words that occur less often."""
    columns: Annotated[Columns, Without(without(TEXT))] = field(default_factory=Columns)
    training: WordTrainConfig = field(default_factory=WordTrainConfig)
    given: Given = field(default_factory=Given)

    def run(self) -> None:
        with Progress("reading"):
            run = self._resumed(self.resume) if self.resume else self._new()
            step = cast("cr.train.WordVectorStep", run.trainer.step)
            words, text = run.tokenizer.vocab_size - 1, int(step.counts.sum())
            before = step.loss()
        if reading := getattr(run.corpus, "reading", None):
            self.say(str(reading))
        self.say(
            f"{words:,} words of {run.corpus.name}, which occur {text:,} times; "
            f"vectors of {run.model.config.dim} numbers; run {run.folder}"
        )
        if run.finished:
            epochs = f"all its {run.trainer.steps} epochs are done"
            self.say(f"the run is finished: {epochs} (more are a new run)")
        made = self._train(run, step)
        after = step.loss()
        if self.json:
            report = {"run": str(run.folder), "words": words, "text": text, "loss_before": before, **made}
            print(json.dumps({**report, "loss": after, "vectors": str(run.files.vectors)}))
        else:
            pace = f"{made['words_per_second']:,.0f} words/s"
            print(f"loss {before:.3f} -> {after:.3f} nats per pair at {pace}")
        self._say_next(run, made["interrupted"])

    def _say_next(self, run: cr.runs.Run, interrupted: bool) -> None:
        if not interrupted:
            words, _ = run.task.vectors(run.model) or ([], None)
            common = next(word for word in words if len(word) > 4 or word == words[-1])
            self.say(f"vectors in {run.files.vectors}")
            self.say(f"look at them with: {command_line('vectors', run.folder, common)}")
            return
        if run.trainer.steps:
            again = command_line("train", "word2vec", "--resume", run.folder)
            self.say(f"interrupted; resume with: {again}")
        else:
            self.say("interrupted in the first epoch: nothing is kept (a checkpoint follows each epoch)")
        raise SystemExit(130)

    def _new(self) -> cr.runs.Run:
        folder = self.out or Path("runs/word2vec")
        sizes: dict[str, Any] = {"dim": self.dim, "window": self.window, "min_count": self.min_count}
        sizes |= {"numbered": self.out is None, "columns": self.columns}
        return cr.runs.Run.new(folder, self.data, self.training, self.model, **sizes)

    def _resumed(self, folder: Path) -> cr.runs.Run:
        from chainrule.cli.args.runs.resume import agree, same_data, same_folder

        run = cr.runs.Run.resume(folder, word_vectors=True)
        same_folder(self.out, folder)
        same_data(run, self.data, self.columns)
        of_run = vars(run.model.config) | vars(run.config) | {"model": run.family}
        of_run |= {name: value for name, value in run.task.facts().items() if value is not None}
        agree(vars(self) | vars(self.training), self.given, of_run)
        return run

    def _train(self, run: cr.runs.Run, step: cr.train.WordVectorStep) -> dict[str, Any]:
        from rich.console import Console

        with Progress("training") as progress:  # which alone draws on a terminal
            result = run.train(Console(stderr=True, highlight=False, force_terminal=False), progress.say)
        return {
            "seconds": round(step.seconds, 3),
            "words_per_second": round(step.words / max(step.seconds, 1e-9)),
            "interrupted": result.interrupted,
        }
