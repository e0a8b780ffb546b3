"""A run of word2vec: a directory with a checkpoint after every epoch and, in the end, the vectors as text."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.data import Corpus, load
from chainrule.errors import CheckpointError, ConfigError, DataError, Setting
from chainrule.files import flush
from chainrule.io.vectors import read_vectors, write_vectors
from chainrule.models import CBOW, NOTHING, SkipGram, Word2Vec, Word2VecConfig
from chainrule.random import seed
from chainrule.runs import checkpoint, environment, kinds
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.folder import LOG, at_work, make_empty, refuse_checkpoint
from chainrule.runs.load import this_version, unchanged
from chainrule.tasks.task import facts_of
from chainrule.text import LowercaseWordTokenizer
from chainrule.train import log
from chainrule.train.word2vec import Progress, WordTrainConfig, WordTrainer

KINDS: dict[str, type[Word2Vec]] = dict(zip(kinds.WORD_VECTORS.types, (SkipGram, CBOW), strict=True))


class WordRun:
    """Training of word2vec on the words of a corpus."""

    def __init__(
        self,
        folder: Path,
        corpus: Corpus,
        tokenizer: LowercaseWordTokenizer,
        model: Word2Vec,
        config: WordTrainConfig,
        min_count: int | None = None,
    ) -> None:
        self.folder = folder
        self.corpus = corpus
        self.tokenizer = tokenizer
        self.model = model
        self.min_count = min_count  # with which the tokenizer was made; older checkpoints do not say
        self.trainer = WordTrainer(model, word_ids(corpus.text, tokenizer), config)

    @classmethod
    def new(
        cls,
        folder: str | Path,
        corpus: Corpus,
        config: WordTrainConfig,
        *,
        kind: str = "skip-gram",
        min_count: int = 5,
        **size: int,
    ) -> WordRun:
        """Start in an empty or new directory; `size` are the fields of `Word2VecConfig` but for the vocabulary."""
        tokenizer = LowercaseWordTokenizer.train(corpus.text, min_count=min_count)
        if tokenizer.vocab_size < 3:
            raise DataError(
                f"{corpus.name}: {tokenizer.vocab_size - 1} words occur {min_count} times ",
                *("(must be at least 2; lower ", Setting("min_count"), " or take a longer text)"),
            )
        seed(config.seed)
        model = KINDS[kind](Word2VecConfig(**size, vocab_size=tokenizer.vocab_size))
        run = cls(Path(folder), corpus, tokenizer, model, config, min_count)
        make_empty(run.folder, LOG)
        return run

    @classmethod
    def resume(cls, folder: str | Path) -> WordRun:
        """Go on after the last whole epoch of a run, as if it had never stopped."""
        refuse_checkpoint(Path(folder))
        saved = kinds.load(folder, kinds.WORD_VECTORS)
        model, tokenizer = build(saved)
        with this_version(folder):
            config, data = WordTrainConfig(**saved.training["train"]), saved.training["data"]
            name, digest = data["name"], data["sha256"]
        corpus = unchanged(folder, load, name, digest)
        run = cls(Path(folder), corpus, tokenizer, model, config, saved.training.get("min_count"))
        run.trainer.epoch = saved.step
        return run

    @property
    def kind(self) -> str:
        """skip-gram or cbow"""
        return next(name for name, cls in KINDS.items() if isinstance(self.model, cls))

    @property
    def finished(self) -> bool:
        """All epochs are done."""
        return self.trainer.epoch >= self.trainer.config.epochs

    @property
    def log_path(self) -> Path:
        """A line per epoch."""
        return self.folder / LOG

    @property
    def vectors_path(self) -> Path:
        """The vectors as text, for other tools."""
        return self.folder / "vectors.txt"

    def train(self) -> Generator[Progress]:
        """Train to the end; a checkpoint after every epoch, and `vectors.txt` after the last."""
        with at_work(self.folder), nullcontext() if self.finished else self._recorded():
            done = self.trainer.epoch
            if not done:
                self.save()
            log.cut(self.log_path, done)
            for progress in self.trainer.run():
                if self.trainer.epoch > done:
                    done = self.trainer.epoch
                    self._note({"step": done, "loss": self.trainer.loss(), "lr": progress.lr})
                    self.save()
                yield progress
            write_vectors(self.vectors_path, *self.vectors())

    def _note(self, record: dict[str, Any]) -> None:
        """A line of the log, on the disk before the checkpoint is."""
        try:
            with self.log_path.open("ab") as file:
                file.write(log.encode(record).encode())
                flush(file)
        except OSError as error:
            raise ConfigError(f"{self.log_path}: cannot be written ({error.strerror})") from error

    def _recorded(self) -> AbstractContextManager[None]:
        facts = {
            "family": self.kind,
            "parameters": self.model.count(),
            "data": facts_of(self.corpus),
            "per_nat": {},
        }
        return environment.recorded(self.folder, facts, lambda: (self.trainer.epoch, self.finished))

    def save(self) -> Path:
        """Write a checkpoint of the run as it is now."""
        return checkpoint.save(
            self.folder,
            Checkpoint(
                model=self.model.state(),
                optimizer={},  # plain gradient steps have no memory
                config={"model_type": self.kind} | asdict(self.model.config),
                tokenizer=self.tokenizer.to_dict(),
                training={
                    "step": self.trainer.epoch,
                    "min_count": self.min_count,
                    "train": asdict(self.trainer.config),
                    "data": facts_of(self.corpus),
                },
            ),
        )

    def vectors(self) -> tuple[list[str], npt.NDArray[Any]]:
        """Words and matrix (V, C), without the unknown word."""
        return _vectors(self.model, self.tokenizer)


def word_ids(text: str, tokenizer: LowercaseWordTokenizer) -> npt.NDArray[np.int32]:
    """Known words of a text, with a boundary after each paragraph; rare words are as if they were not there."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        ids = tokenizer.encode(paragraph)
        parts += [ids[ids != tokenizer.unknown_id], [NOTHING]]
    return np.concatenate(parts).astype(np.int32)


def load_vectors(path: str | Path) -> tuple[list[str], npt.NDArray[Any]]:
    """Words and matrix (V, C) of a run (its newest checkpoint), of a checkpoint, or of a text file of vectors."""
    if Path(path).is_file():
        return read_vectors(path)
    return _vectors(*build(kinds.load(path, kinds.WORD_VECTORS)))


def build(saved: Checkpoint) -> tuple[Word2Vec, LowercaseWordTokenizer]:
    """The model and the tokenizer in a checkpoint."""
    config = dict(saved.config)
    kind = config.pop("model_type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise CheckpointError(f"checkpoint: model_type {kind!r} (must be {' or '.join(KINDS)})")
    try:
        size = Word2VecConfig(**config)
        saved.check_size(int(size.n_params))
        model = KINDS[kind](size)
    except (TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"checkpoint: config.json does not fit this version ({error})") from error
    tokenizer = LowercaseWordTokenizer.from_dict(saved.tokenizer)
    if tokenizer.vocab_size != model.config.vocab_size:
        raise CheckpointError(
            f"checkpoint: tokenizer of {tokenizer.vocab_size} words, model of {model.config.vocab_size} "
            "(must be equal)"
        )
    model.load(saved.model)
    return model, tokenizer


def _vectors(model: Word2Vec, tokenizer: LowercaseWordTokenizer) -> tuple[list[str], npt.NDArray[Any]]:
    known = [i for i in range(tokenizer.vocab_size) if i != tokenizer.unknown_id]
    return [tokenizer.words[i] for i in known], model.input.weight.array[known]
