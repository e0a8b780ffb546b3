"""The one trainer on BERT: pre-training on text, then a classifier on the same body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import Encoded, LabeledBatches, MaskedBatches, SpecialIds
from chainrule.errors import ConfigError
from chainrule.models import BERTClassifier, Model, fine_tune, make
from chainrule.train import TrainConfig
from chainrule.train.log import Logger
from chainrule.train.trainer import Trainer

SPECIAL = SpecialIds(cls=1, sep=2, mask=3)
SIZES: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 32, "n_hidden": 64}
SIZES |= {"block_size": 16, "vocab_size": 24}


class Record(Logger):
    """The losses of all steps."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def step(self, step: int, loss: float, **rest: Any) -> None:
        self.losses.append(loss)

    def evaluation(self, step: int, loss: float, **rest: Any) -> None:
        self.judged = loss


def texts(n: int, seed: int) -> tuple[list[np.ndarray], list[int]]:
    """Two kinds of text, each with words of its own between words of both."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(2, size=n)
    rows = [np.where(rng.random(13) < 0.3, rng.integers(4, 8, 13) + 4 * kind, 12) for kind in kinds]
    return rows, kinds.tolist()


def trained(model: Model, batches: Any, exam: Any, steps: int, lr: float, **settings: Any) -> Record:
    record = Record()
    config = TrainConfig(max_steps=steps, lr=lr, warmup=20, eval_every=steps, **settings)
    Trainer(model, batches, list(exam), config).run(record)
    return record


def pretrained(steps: int, dropout: float = 0.1, **settings: Any) -> tuple[Any, Record]:
    source = MaskedBatches(
        Encoded.of(texts(60, seed=0)[0]), special=SPECIAL, vocab_size=24, batch_size=16, block_size=16
    )
    cr.seed(0)
    model = make("bert", **SIZES, dropout=dropout)
    exam = [source.batch(10_000 + k) for k in range(4)]
    return model, trained(model, source, exam, steps, lr=5e-3, **settings)


def test_pretraining_and_a_classifier_on_its_body() -> None:
    model, record = pretrained(80)
    assert np.mean(record.losses[-10:]) < 0.7 * record.losses[0]
    rows, labels = texts(96, seed=1)
    sizes: dict[str, Any] = {"special": SPECIAL, "batch_size": 16, "block_size": 16}
    exam = list(LabeledBatches(rows[48:], labels[48:], **sizes).once())
    classifier = fine_tune(model, BERTClassifier)
    trained(classifier, LabeledBatches(rows[:48], labels[:48], **sizes), exam, 60, lr=3e-3)
    classifier.eval()
    right = [classifier(*inputs).numpy().argmax(-1) == wanted for inputs, wanted in exam]
    assert np.mean(np.concatenate(right)) > 0.9


def test_computing_the_blocks_again_changes_no_bit() -> None:
    (_, kept), (model, again) = pretrained(5), pretrained(5, recompute=True)
    assert model.bert.recompute and kept.losses == again.losses


def test_cutting_a_batch_changes_nothing_but_rounding() -> None:
    """Though the pieces differ in how many words are asked for."""
    (_, whole), (_, cut) = (pretrained(3, dropout=0.0), pretrained(3, dropout=0.0, accumulate=5))
    np.testing.assert_allclose(whole.losses, cut.losses, rtol=1e-5)


def test_the_same_run_twice_gives_the_same_bits() -> None:
    (one, first), (two, second) = pretrained(5), pretrained(5)
    assert first.losses == second.losses and first.judged == second.judged
    assert all((value == two.state()[name]).all() for name, value in one.state().items())


def test_a_loss_that_compares_all_of_a_batch_is_not_cut_into_pieces() -> None:
    batches: Any = None
    model = make("bert-embedder", **SIZES)
    Trainer(model, batches, [], TrainConfig(accumulate=1))
    with pytest.raises(ConfigError, match=r"accumulate is 2 \(must be 1 for a BERTEmbedder"):
        Trainer(model, batches, [], TrainConfig(accumulate=2))


def test_rows_to_evaluate_on_are_counted_as_they_are_packed() -> None:
    """Short documents share a row."""
    tokenizer = cr.text.WordPieceTokenizer.train(["one two three four five six"] * 9, 24)
    documents = Encoded.of([np.arange(5, 9)] * 48)
    task = cr.tasks.MaskedLMTask(cr.data.Corpus("text", "file", "text"), tokenizer, documents, documents)
    model = make("bert", **SIZES | {"vocab_size": tokenizer.vocab_size})
    rows = 48 // 3  # [CLS] and three of 4 tokens and [SEP] make 16
    for limit, used in ((8, 8), (100, rows)):
        share = task.share(model, task.eval_batches(model, batch_size=4, limit=limit))
        assert share == (used, rows, "windows")
