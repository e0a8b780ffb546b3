"""`chainrule train word2vec`"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from chainrule.cli.show import command_line
from chainrule.data import load
from chainrule.errors import ConfigError
from chainrule.models import Word2VecConfig
from chainrule.train.runs import free_folder
from chainrule.train.word2vec import WordTrainConfig
from chainrule.train.word_runs import WordRun


@dataclass(frozen=True)
class Command:
    """Learn a vector for each word of a text, with word2vec.

    Example: chainrule train word2vec book.txt --dim 100 --epochs 5 --out runs/words
    """

    data: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")] = "pydoc"
    """A text file, or a corpus that `chainrule data list` knows."""
    out: Path | None = None
    """Directory of the run. Default: runs/word2vec, or the next of runs/word2vec-2, ... that is free."""
    resume: Path | None = None
    """Go on with this run, with its data and settings, after its last whole epoch."""
    model: Literal["skip-gram", "cbow"] = "skip-gram"
    """A word predicts its neighbours, or the mean of the neighbours predicts the word."""
    dim: int = Word2VecConfig.dim
    """Length of a word's vector."""
    window: int = Word2VecConfig.window
    """Farthest neighbour, in words to either side."""
    min_count: int = 5
    """Leave out words that occur less often."""
    training: tyro.conf.OmitArgPrefixes[WordTrainConfig] = field(default_factory=WordTrainConfig)
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        run = self._resumed(self.resume) if self.resume else self._new()
        report: dict[str, Any] = {
            "run": str(run.folder),
            "words": run.tokenizer.vocab_size - 1,
            "text": int(run.trainer.counts.sum()),
            "loss_before": run.trainer.loss(),
        }
        if not self.json:
            print(
                f"{report['words']:,} words of {run.corpus.name}, which occur {report['text']:,} times; "
                f"vectors of {run.model.config.dim} numbers; run {run.folder}"
            )
        report |= self._train(run)
        report |= {"loss": run.trainer.loss(), "vectors": str(run.vectors_path)}
        if self.json:
            print(json.dumps(report))
            return
        print(
            f"loss {report['loss_before']:.3f} -> {report['loss']:.3f} nats per pair "
            f"at {report['words_per_second']:,.0f} words/s; vectors in {run.vectors_path}"
        )
        common = next(
            word for word in run.tokenizer.words[1:] if len(word) > 4 or word == run.tokenizer.words[-1]
        )
        print(f"look at them with: {command_line()} vectors {run.folder} {common}")

    def _new(self) -> WordRun:
        folder = self.out or free_folder(Path("runs/word2vec"))
        size = {"dim": self.dim, "window": self.window}
        return WordRun.new(
            folder, load(self.data), self.training, kind=self.model, min_count=self.min_count, **size
        )

    def _resumed(self, folder: Path) -> WordRun:
        given = {name: value for name, value in vars(self).items() if name not in ("resume", "json")}
        fresh = vars(Command())
        changed = [name for name, value in given.items() if value != fresh[name]]
        if changed:
            raise ConfigError(
                f"resume: {changed[0]} is given (leave it out: a run keeps its data and settings)"
            )
        return WordRun.resume(folder)

    def _train(self, run: WordRun) -> dict[str, float]:
        words, began = 0, time.monotonic()
        columns = ("{task.description}", BarColumn(), "{task.percentage:>3.0f}%", TimeRemainingColumn())
        bar = Progress(
            *(TextColumn(column) if isinstance(column, str) else column for column in columns),
            console=Console(file=sys.stderr),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        with bar:
            task = bar.add_task("reading", total=1.0)
            for progress in run.train():
                words += progress.words
                pace = words / max(time.monotonic() - began, 1e-9)
                about = f"epoch {progress.epoch + 1} of {run.trainer.config.epochs}   {pace:,.0f} words/s"
                bar.update(task, completed=progress.share, description=about)
        seconds = time.monotonic() - began
        return {"seconds": round(seconds, 3), "words_per_second": round(words / max(seconds, 1e-9))}
