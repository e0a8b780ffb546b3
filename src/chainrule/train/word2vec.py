"""Training of word2vec on texts of millions of words, with the same bits for any number of threads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import ChainruleError, ConfigError, DataError, Setting
from chainrule.models import CBOW, NOTHING, Word2Vec
from chainrule.random import generator, key
from chainrule.tasks.word_sampling import AliasTable, keep_probability, noise
from chainrule.train.word_update import Stretch, learn
from chainrule.validate import Check

Array = npt.NDArray[Any]

STRETCH = 1 << 14  # centres with one learning rate, and between two reports of progress
COUNT, LANES = 32, 8  # centres per chunk; chunks per round, at most
MOST_STALE = (
    8.0  # steps that one row may take within a round without seeing each other, times the learning rate
)
MOST_WINDOW, MOST_NEGATIVES = 64, 1000


@dataclass(frozen=True)
class WordTrainConfig:
    """How to train word2vec."""

    epochs: int = 5
    """Times through the text."""
    lr: float | None = None
    """First learning rate, which falls linearly to 0. Default: 0.025 for skip-gram, 0.075 for CBOW."""
    negatives: int = 5
    """Words drawn at random against each real one."""
    sample: float = 1e-3
    """Words more frequent than this fraction of the text are subsampled; 0 keeps all."""
    power: float = 0.75
    """Negatives are drawn by frequency to this power; 0 draws all words alike."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        check = Check("word2vec", self)
        check.at_least(1, "epochs")
        check.between(1, MOST_NEGATIVES, "negatives")
        check.positive("lr")
        check.not_negative("sample", "power")
        check.seed()


class Progress(NamedTuple):
    """Where training is after another stretch of text."""

    epoch: int  # being read, from 0
    words: int  # read in this stretch: those that subsampling left
    share: float  # of the whole training that is done
    lr: float  # of this stretch


class WordTrainer:
    """Trains a `SkipGram` or a `CBOW` on a text given as ids, with -1 at its boundaries.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.SkipGram(cr.models.Word2VecConfig(vocab_size=4, dim=8, window=2))
    >>> trainer = cr.train.WordTrainer(model, [0, 1, 2, 3, -1, 3, 1, 2, 0], cr.train.WordTrainConfig(epochs=3))
    >>> [progress.epoch for progress in trainer.run()]
    [0, 1, 2]
    """

    def __init__(self, model: Word2Vec, ids: npt.ArrayLike, config: WordTrainConfig | None = None) -> None:
        self.model = model
        self.config = config or WordTrainConfig()
        self.ids, self.counts = _checked(ids, model.config.vocab_size)
        if model.config.window > MOST_WINDOW:
            rule = f"must be at most {MOST_WINDOW} to train"
            raise ConfigError.of("word2vec", {"window": model.config.window}, rule)
        self.lr = model.default_lr if self.config.lr is None else self.config.lr
        self.average = isinstance(model, CBOW)
        self.noise = noise(self.counts, self.config.power)
        self.table = AliasTable.of(self.noise)
        self.count, self.lanes = self._round()
        self.epoch = 0  # those done; set it to go on from a checkpoint

    def run(self) -> Iterator[Progress]:
        """Train from `epoch` to the end, reporting after every stretch of text.

        What an epoch does depends on the tables it starts from and on its number, on nothing else.
        """
        while self.epoch < self.config.epochs:
            yield from self._read(self.epoch)

    def _read(self, epoch: int) -> Iterator[Progress]:
        config, tables = self.config, (self.model.input.weight, self.model.output.weight)
        kept, name = self.kept(epoch), key("word2vec", epoch, seed=config.seed)
        n = max(len(kept), 1)
        for first in range(0, n, STRETCH):
            last = min(first + STRETCH, len(kept))
            lr = self.lr * (1 - (epoch + first / n) / config.epochs)
            stretch = Stretch(
                kept, first, last, self.table, name, self.model.config.window, config.negatives, self.average,
                lr, self.count, self.lanes,
            )  # fmt: skip
            learn(tables[0].array, tables[1].array, stretch)
            for table in tables:
                table.version += 1
            if last == len(kept):
                if not all(np.isfinite(table.array).all() for table in tables):
                    raise ChainruleError(
                        f"word2vec: the vectors are no longer finite after epoch {epoch + 1} ",
                        *("(try a smaller ", Setting("lr"), f" than {self.lr:g})"),
                    )
                self.epoch = epoch + 1
            words = int(np.count_nonzero(kept[first:last] != NOTHING))
            yield Progress(epoch, words, (epoch + last / n) / config.epochs, lr)

    def kept(self, epoch: int) -> npt.NDArray[np.int32]:
        """The text as this epoch reads it: each word drawn against its probability, boundaries as they are."""
        chance = np.append(keep_probability(self.counts, self.config.sample), 1.0).astype(np.float32)
        draws = generator("word2vec keep", epoch, seed=self.config.seed).random(len(self.ids), np.float32)
        return self.ids[draws < chance[self.ids]]  # NOTHING is the last place of `chance`

    def loss(self, pairs: int = 10_000) -> float:
        """The sampled loss on pairs from the beginning of the text, the same at every call; ln 2 (K + 1) at first."""
        inputs, targets = self.model.examples(self.kept(0)[:pairs])
        if not len(targets):
            return math.nan
        chosen = generator("word2vec loss", seed=self.config.seed)
        some = chosen.permutation(len(targets))[:pairs]
        negatives = chosen.choice(len(self.noise), size=(len(some), self.config.negatives), p=self.noise)
        return float(self.model.sampled_loss(inputs[some], targets[some], negatives).item())

    def _round(self) -> tuple[int, int]:
        """Centres per chunk and chunks per round: as many as a text's most frequent word allows.

        The chunks of a round do not see each other's steps, which add up for a word that occurs in all of them.
        A function of the text and the settings, not of the machine.
        """
        read = self.counts * keep_probability(self.counts, self.config.sample)
        share, K = read / read.sum(), self.config.negatives
        uses = float(np.maximum((1 + K) * share, share + K * self.noise).max())  # of one row, per centre
        pairs = 1 if self.average else self.model.config.window + 1  # per use: a mean counts as one input
        centres = max(int(MOST_STALE / (self.lr * pairs * uses)), 1)
        lanes = max(min(LANES, centres // COUNT), 1)
        return COUNT, lanes


def _checked(ids: npt.ArrayLike, V: int) -> tuple[npt.NDArray[np.int32], Array]:
    text = np.asarray(ids)
    if text.ndim != 1 or text.dtype.kind not in "iu":
        raise DataError(f"word2vec: got ids of {text.dtype} {text.shape} (must be integers of shape (n,))")
    outside = (text < NOTHING) | (text >= V)
    if outside.any():
        place = int(outside.argmax())
        raise DataError(f"word2vec: id {text[place]} at position {place} (must be from -1 to {V - 1})")
    counts = np.bincount(text[text >= 0], minlength=V)
    if np.count_nonzero(counts) < 2:
        raise DataError(
            f"word2vec: {np.count_nonzero(counts)} different words in the text (must be at least 2)"
        )
    if not ((text[1:] != NOTHING) & (text[:-1] != NOTHING)).any():
        raise DataError(
            "word2vec: no two words stand together between boundaries (no window has a neighbour)"
        )
    return text.astype(np.int32), counts
