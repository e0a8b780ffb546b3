"""`chainrule train word2vec`"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from chainrule.cli.args.options import Argument, Given
from chainrule.cli.args.resume import agree, same_folder
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line
from chainrule.data import load
from chainrule.errors import ConfigError
from chainrule.models import Word2VecConfig
from chainrule.runs.folder import free_folder
from chainrule.runs.word_runs import WordRun
from chainrule.train.interrupt import Interrupt
from chainrule.train.word2vec import WordTrainConfig


@dataclass(frozen=True)
class Command:
    """Learn a vector for each word of a text, with word2vec.

    Example: chainrule train word2vec book.txt --dim 100 --epochs 5 --out runs/words
    """

    data: Annotated[str, Argument("DATA")] = "pydoc"
    """A text file, or a corpus that `chainrule data list` knows."""
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
    training: WordTrainConfig = field(default_factory=WordTrainConfig)
    json: bool = False
    """Print one JSON object at the end, and everything else on stderr."""
    given: Given = frozenset()

    def run(self) -> None:
        with Progress("reading"):
            run = self._resumed(self.resume) if self.resume else self._new()
            report: dict[str, Any] = {
                "run": str(run.folder),
                "words": run.tokenizer.vocab_size - 1,
                "text": int(run.trainer.counts.sum()),
                "loss_before": run.trainer.loss(),
            }
        self._say(
            f"{report['words']:,} words of {run.corpus.name}, which occur {report['text']:,} times; "
            f"vectors of {run.model.config.dim} numbers; run {run.folder}"
        )
        if run.finished:
            self._say(
                f"the run is finished: all its {run.trainer.epoch} epochs are done (more are a new run)"
            )
        report |= self._train(run)
        report |= {"loss": run.trainer.loss(), "vectors": str(run.vectors_path)}
        if self.json:
            print(json.dumps(report))
        else:
            print(
                f"loss {report['loss_before']:.3f} -> {report['loss']:.3f} nats per pair "
                f"at {report['words_per_second']:,.0f} words/s"
            )
        self._say_next(run, report["interrupted"])

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr if self.json else sys.stdout)

    def _say_next(self, run: WordRun, interrupted: bool) -> None:
        if not interrupted:
            words = run.tokenizer.words
            common = next(word for word in words[1:] if len(word) > 4 or word == words[-1])
            self._say(f"vectors in {run.vectors_path}")
            self._say(f"look at them with: {command_line()} vectors {run.folder} {common}")
            return
        if run.trainer.epoch:
            self._say(f"interrupted; resume with: {command_line()} train word2vec --resume {run.folder}")
        else:
            self._say("interrupted in the first epoch: nothing is kept (a checkpoint follows each epoch)")
        raise SystemExit(130)

    def _new(self) -> WordRun:
        folder = self.out or free_folder(Path("runs/word2vec"))
        size = {"dim": self.dim, "window": self.window}
        return WordRun.new(
            folder, load(self.data), self.training, kind=self.model, min_count=self.min_count, **size
        )

    def _resumed(self, folder: Path) -> WordRun:
        run = WordRun.resume(folder)
        same_folder(self.out, folder)
        if self.data != Command.data and load(self.data) != run.corpus:
            raise ConfigError(f"resume: data is {self.data}, in the run {run.corpus.name} (leave it out)")
        of_run = vars(run.model.config) | vars(run.trainer.config) | {"model": run.kind}
        if run.min_count is not None:
            of_run["min_count"] = run.min_count
        default = vars(Command()) | vars(WordTrainConfig())
        agree(vars(self) | vars(self.training), default, self.given, of_run)
        return run

    def _train(self, run: WordRun) -> dict[str, Any]:
        words, began = 0, time.monotonic()
        epochs = run.trainer.config.epochs
        with Interrupt() as interrupt, Progress("training") as progress, closing(run.train()) as stretches:
            for done in stretches:
                words += done.words
                pace = words / max(time.monotonic() - began, 1e-9)
                progress.say(f"epoch {done.epoch + 1} of {epochs}, {done.share:.0%}, {pace:,.0f} words/s")
                if interrupt.asked:
                    break
        seconds = time.monotonic() - began
        return {
            "seconds": round(seconds, 3),
            "words_per_second": round(words / max(seconds, 1e-9)),
            "interrupted": interrupt.asked,
        }
