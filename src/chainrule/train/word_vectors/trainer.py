"""Word vectors: a step is an epoch over a text of millions of words, with the same bits for any number of threads."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.distributed import world
from chainrule.errors import ConfigError, DataError, Failure, Setting
from chainrule.models import CBOW, NOTHING, Word2Vec
from chainrule.random import generator, key
from chainrule.tasks.word_vectors import WordVectorsTask
from chainrule.train.config import TrainConfig, WordTrainConfig
from chainrule.train.share import check_alone
from chainrule.train.step import GoingOn, Step
from chainrule.train.trainer import Trainer
from chainrule.train.word_vectors.sampling import AliasTable, keep_probability, noise
from chainrule.train.word_vectors.update import Passage, learn
from chainrule.types import Array

PASSAGE = 1 << 14  # centers with one learning rate, and between two reports of progress
COUNT, LANES = 32, 8  # centers per chunk; chunks per round, at most
MOST_STALE = 8.0  # steps of one row within a round, which do not see each other, times the learning rate
MOST_WINDOW = 64


class Progress(NamedTuple):
    """Where training is after another passage of text."""

    epoch: int  # being read, from 0
    words: int  # read in this passage: those that subsampling left
    fraction: float  # of the training that is done
    lr: float  # of this passage


class WordVectorStep(Step):
    """One epoch of a `SkipGram` or a `CBOW` over a text given as ids, with -1 at its boundaries.

    What an epoch does depends on the tables it starts from and on its number, on nothing else.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.SkipGram(cr.models.Word2VecConfig(vocab_size=4, dim=8, window=2))
    >>> step = cr.train.WordVectorStep(model, [0, 1, 2, 3, -1, 3, 1, 2, 0], cr.train.WordTrainConfig(epochs=3))
    >>> [progress.epoch for epoch in range(3) for progress in step.read(epoch)]
    [0, 1, 2]
    """

    by_epoch = True

    def __init__(self, model: Word2Vec, ids: npt.ArrayLike, settings: WordTrainConfig | None = None) -> None:
        check_alone("train word2vec", world().size, "each word changes the vectors that the next one reads")
        self.model = model
        self.settings = settings or WordTrainConfig()
        self.ids, self.counts = _checked(ids, model.config.vocab_size)
        if model.config.window > MOST_WINDOW:
            rule = f"must be at most {MOST_WINDOW} to train"
            raise ConfigError.of("word2vec", {"window": model.config.window}, rule)
        lr = self.settings.lr
        self.lr = self.rate = model.default_lr if lr is None else lr  # of the first words
        self.mean = isinstance(model, CBOW)  # of the window is the input
        self.noise = noise(self.counts, self.settings.power)
        self.table = AliasTable.of(self.noise)
        self.lanes = self._lanes()
        self.uniform = math.log(2) * (self.settings.negatives + 1)
        self.words, self.seconds = 0, 0.0  # read so far, and in what time

    def __call__(
        self, number: int, lr: float, going_on: GoingOn = lambda said: True
    ) -> tuple[float, None] | None:
        """Read the text once; given up after the passage at hand if `going_on` says no."""
        began = time.monotonic() - self.seconds
        for progress in self.read(number):
            self.words += progress.words
            self.seconds = time.monotonic() - began
            pace = self.words / max(self.seconds, 1e-9)
            epoch = f"epoch {number + 1} of {self.settings.epochs}"
            said = f"{epoch}, {progress.fraction:.0%}, {pace:,.0f} words/s"
            if not going_on(said):
                return None
            self.rate = progress.lr
        return self.loss(), None

    def read(self, epoch: int) -> Iterator[Progress]:
        """Learn from the text once, passage by passage."""
        settings, tables = self.settings, (self.model.input.weight, self.model.output.weight)
        kept, name = self.kept(epoch), key("word2vec", epoch, seed=settings.seed)
        n = max(len(kept), 1)
        for first in range(0, n, PASSAGE):
            last = min(first + PASSAGE, len(kept))
            lr = self.lr * (1 - (epoch + first / n) / settings.epochs)
            passage = Passage(
                kept, first, last, self.table, name, self.model.config.window, settings.negatives, self.mean,
                lr, COUNT, self.lanes,
            )  # fmt: skip
            learn(tables[0].array, tables[1].array, passage)
            for table in tables:
                table.version += 1
            if last == len(kept) and not all(np.isfinite(table.array).all() for table in tables):
                raise Failure(
                    f"word2vec: the vectors are no longer finite after epoch {epoch + 1} ",
                    *("(try a smaller ", Setting("lr"), f" than {self.lr:g})"),
                )
            words = int(np.count_nonzero(kept[first:last] != NOTHING))
            yield Progress(epoch, words, (epoch + last / n) / settings.epochs, lr)

    def kept(self, epoch: int) -> npt.NDArray[np.int32]:
        """The text as this epoch reads it: each word drawn against its probability, boundaries as they are."""
        chance = np.append(keep_probability(self.counts, self.settings.sample), 1.0).astype(np.float32)
        draws = generator("word2vec keep", epoch, seed=self.settings.seed).random(len(self.ids), np.float32)
        return self.ids[draws < chance[self.ids]]  # NOTHING is the last place of `chance`

    def loss(self, pairs: int = 10_000) -> float:
        """The sampled loss on pairs from the beginning of the text, the same at every call; ln 2 (K + 1) at first."""
        inputs, targets = self.model.examples(self.kept(0)[:pairs])
        if not len(targets):
            return math.nan
        chosen = generator("word2vec loss", seed=self.settings.seed)
        some = chosen.permutation(len(targets))[:pairs]
        negatives = chosen.choice(len(self.noise), size=(len(some), self.settings.negatives), p=self.noise)
        return float(self.model.sampled_loss(inputs[some], targets[some], negatives).item())

    def _lanes(self) -> int:
        """Chunks per round: as many as a text's most frequent word allows.

        The chunks of a round do not see each other's steps, which add up for a word that occurs in all of them.
        A function of the text and the settings, not of the machine.
        """
        read = self.counts * keep_probability(self.counts, self.settings.sample)
        frequency, K = read / read.sum(), self.settings.negatives
        # updates of one row, per center
        uses = float(np.maximum((1 + K) * frequency, frequency + K * self.noise).max())
        pairs = 1 if self.mean else self.model.config.window + 1  # per use: a mean counts as one input
        centers = max(int(MOST_STALE / (self.lr * pairs * uses)), 1)
        return max(min(LANES, centers // COUNT), 1)


def _checked(ids: npt.ArrayLike, V: int) -> tuple[npt.NDArray[np.int32], Array]:
    text = np.asarray(ids)
    if text.ndim != 1 or text.dtype.kind not in "iu":
        raise DataError(f"word2vec: got ids of {text.dtype} {text.shape} (must be integers of shape (n,))")
    outside = (text < NOTHING) | (text >= V)
    if outside.any():
        place = int(outside.argmax())
        raise DataError(f"word2vec: id {text[place]} at position {place} (must be from -1 to {V - 1})")
    counts = np.bincount(text[text >= 0], minlength=V)
    if (different := np.count_nonzero(counts)) < 2:
        raise DataError(f"word2vec: {different} different words in the text (must be at least 2)")
    if not ((text[1:] != NOTHING) & (text[:-1] != NOTHING)).any():
        raise DataError("word2vec: no two words stand together between boundaries (no window has a neighbor)")
    return text.astype(np.int32), counts


def word_trainer(task: WordVectorsTask, model: Word2Vec, settings: WordTrainConfig) -> Trainer:
    """A trainer whose steps are epochs, with a checkpoint after each; there is nothing to evaluate on the way."""
    step, epochs, seed = WordVectorStep(model, task.ids, settings), settings.epochs, settings.seed
    config = TrainConfig(max_steps=epochs, lr=step.lr, weight_decay=0.0, save_every=1, seed=seed)
    return Trainer(model, None, [], config, task.tokenizer, step)
