"""Tasks that ask what a model of sequences can remember, and training just long enough to see it.

    Recall    which token came first, `distance` tokens ago?
    Order     of two words, which came first? Counting words cannot tell.
    Copy      write down the sequence that was read
    Retrieve  which token is the marked one, wherever it stands?
    Bites     who bites whom? "dog bites man" and "man bites dog" have the same words.

Every batch is a function of (seed, step).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import nn, random
from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.lessons.networks import sequence_classifier as networks
from chainrule.lessons.networks.rnn_seq2seq import AttentiveEncoderDecoder, EncoderDecoder
from chainrule.lessons.networks.sequence_classifier import RecurrentClassifier, SequenceClassifier
from chainrule.optim import AdamW, clip_global_norm

ATTENTIVE: dict[str, type[SequenceClassifier]] = {
    "bag": networks.BagOfWords,
    "attention": networks.AttentionClassifier,
    "retriever": networks.Retriever,
    "encoder": networks.EncoderClassifier,
    "orderless": networks.OrderlessEncoder,
}
Floats = npt.NDArray[np.float64]
PAD = 0
DISTANCES = (5, 20, 80)  # of `recall_table`
B = 32  # rows of a batch
EVAL = 1 << 20  # batches from this step on are for evaluation; no training gets there


@dataclass(frozen=True)
class Recall:
    """One of four tokens, then `distance` others: which one was it?"""

    distance: int
    seed: int = 0
    vocab_size = 9
    n_classes = 4

    def batch(self, step: int) -> tuple[Array, Array, Array]:
        """ids (B, distance + 1), lengths (B,), labels (B,)"""
        rng = random.generator("recall", step, seed=self.seed)
        labels = rng.integers(self.n_classes, size=B)
        ids = rng.integers(self.n_classes + 1, self.vocab_size, size=(B, self.distance + 1))
        ids[:, 0] = labels + 1
        return ids, np.full(B, self.distance + 1), labels


@dataclass(frozen=True)
class Order:
    """Two words among others, in texts of different lengths, padded or cut to `longest`: which came first?"""

    longest: int = 12
    seed: int = 0
    vocab_size = 8
    n_classes = 2

    def batch(self, step: int) -> tuple[Array, Array, Array]:
        """ids (B, longest), lengths (B,), labels (B,)"""
        rng = random.generator("order task", step, seed=self.seed)
        T = self.longest
        lengths = rng.integers(2, T + 5, size=B).clip(max=T)  # some texts are longer, and cut
        ids = rng.integers(3, self.vocab_size, size=(B, T))
        places = np.array([np.sort(rng.choice(n, size=2, replace=False)) for n in lengths])  # (B, 2)
        labels = rng.integers(2, size=B)
        ids[np.arange(B), places[:, 0]], ids[np.arange(B), places[:, 1]] = 1 + labels, 2 - labels
        return np.where(np.arange(T) < lengths[:, None], ids, PAD), lengths, labels


@dataclass(frozen=True)
class Retrieve:
    """A row of tokens, one of them marked (as if in bold), then a question: which one is it?"""

    length: int = 40
    seed: int = 0
    n_classes = 8
    vocab_size = 2 * n_classes + 1  # plain tokens, the same ones marked, the question

    def batch(self, step: int) -> tuple[Array, Array, Array]:
        """ids (B, length + 1), lengths (B,), labels (B,)"""
        rng = random.generator("retrieve", step, seed=self.seed)
        rows = np.arange(B)
        ids = rng.integers(self.n_classes, size=(B, self.length + 1))
        places = rng.integers(self.length, size=B)
        labels = ids[rows, places]
        ids[rows, places] += self.n_classes
        ids[:, -1] = self.vocab_size - 1
        return ids, np.full(B, self.length + 1), labels


@dataclass(frozen=True)
class Bites:
    """Two animals around a verb, then the same reversed: does the one that comes first in the alphabet bite?

    Half of the answers are yes for every pair of animals, so a model that ignores the order is right half of the time.
    """

    seed: int = 0
    animals = 6
    vocab_size = animals + 1
    n_classes = 2

    def batch(self, step: int) -> tuple[Array, Array, Array]:
        """ids (B, 3), lengths (B,), labels (B,); the second half of the rows is the first one reversed"""
        rng = random.generator("bites", step, seed=self.seed)
        pairs = [rng.permutation(self.animals)[:2] for _ in range(B // 2)]
        said = np.array([(a, self.animals, b) for a, b in pairs])  # subject, verb, object
        ids = np.concatenate([said, said[:, ::-1]])
        return ids, np.full(len(ids), 3), (ids[:, 0] < ids[:, 2]).astype(np.intp)


@dataclass(frozen=True)
class Copy:
    """A row of random tokens, to be written down again; the decoder is shown what it should have written."""

    length: int = 20
    seed: int = 0
    vocab_size = 10

    def batch(self, step: int) -> tuple[Array, Array, Array]:
        """source (B, n), inputs (B, n) that begin with PAD, targets (B, n)"""
        rng = random.generator("copy", step, seed=self.seed)
        source = rng.integers(1, self.vocab_size, size=(B, self.length))
        begin = np.full((B, 1), PAD)
        return source, np.concatenate([begin, source[:, :-1]], axis=1), source


Question = Recall | Order | Retrieve | Bites  # tasks with a label per row


def fit(model: Any, task: Question | Copy, steps: int, *, lr: float = 3e-3, clip: float = 1.0) -> Floats:
    """Train `model` by AdamW; returns its losses (steps,)"""
    optimizer = AdamW(model.parameters(), lr, weight_decay=0.0)
    losses = np.empty(steps)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model.loss(*task.batch(step))
        loss.backward()
        clip_global_norm(optimizer.params, clip)
        optimizer.step()
        losses[step] = loss.item()
    return losses


def accuracy(model: SequenceClassifier, task: Question, batches: int = 8) -> float:
    """The fraction of right labels in batches that training has not seen."""
    right = []
    with no_grad():
        for step in range(EVAL, EVAL + batches):
            ids, lengths, labels = task.batch(step)
            right.append(model(ids, lengths).numpy().argmax(axis=-1) == labels)
    return float(np.mean(right))


def classifier(kind: str, task: Question, width: int = 32) -> SequenceClassifier:
    """A new model for a task: bag, rnn, gru, lstm, attention, retriever, encoder or orderless."""
    sizes = task.vocab_size, width, task.n_classes
    cells = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
    if kind in cells:
        return RecurrentClassifier(cells[kind], *sizes)
    return ATTENTIVE[kind](*sizes)


def recall_table(
    kinds: tuple[str, ...] = ("rnn", "lstm", "attention"), *, steps: int = 300, seed: int = 0
) -> dict[str, dict[int, float]]:
    """Accuracy of each kind of model at each distance, after as many steps for all; chance is 1/4."""
    table: dict[str, dict[int, float]] = {kind: {} for kind in kinds}
    for kind, distance in product(kinds, DISTANCES):
        with random.seeded(seed):
            task = Recall(distance, seed=seed)
            model = classifier(kind, task)
            fit(model, task, steps)
            table[kind][distance] = accuracy(model, task)
    return table


def copy_losses(length: int = 20, *, steps: int = 300, width: int = 64, seed: int = 0) -> dict[str, Floats]:
    """Losses of the encoder-decoder with one vector between its halves and of the one with attention (steps,)"""
    task = Copy(length, seed=seed)
    losses = {}
    for name, model in (("bottleneck", EncoderDecoder), ("attention", AttentiveEncoderDecoder)):
        with random.seeded(seed):
            losses[name] = fit(model(task.vocab_size, width), task, steps)
    return losses
