"""The one trainer on BERT: pre-training on text, then a classifier on the same body."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.data import Encoded, LabeledBatches, MaskedBatches, SpecialIds
from chainrule.errors import ConfigError
from chainrule.models import BERTClassifier, Model, fine_tune, make
from chainrule.train import TrainConfig
from chainrule.train.log import Logger
from chainrule.train.trainer import Trainer
from chainrule.types import IGNORE

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


def words(n: int) -> str:
    """A text of so many words."""
    return " ".join(np.random.default_rng(0).choice(["red", "green", "blue", "black", "white"], n))


def test_every_window_is_evaluated_on() -> None:
    """Also those that fill no batch, and no more of them than are asked for."""
    corpus = cr.data.Corpus("text", "file", words(2000))
    task = cr.tasks.MaskedLMTask.of(corpus)
    model = make("bert", **SIZES | {"vocab_size": task.tokenizer.vocab_size})
    rows = task.eval_rows(model)
    assert rows % 4, "the last batch must have fewer rows for this test"
    batches = task.eval_batches(model, batch_size=4, limit=10_000)
    assert [len(targets) for _, targets in batches] == [4] * (rows // 4) + [rows % 4]
    assert str(task.share(model, batches)) == f"all {rows} windows"
    some = task.eval_batches(model, batch_size=4, limit=6)
    assert [len(targets) for _, targets in some] == [4, 2]
    np.testing.assert_array_equal(some[0][0].ids, batches[0][0].ids)
    read = np.concatenate([np.where(y == IGNORE, x.ids, y)[x.mask] for x, y in batches])
    text = read[~np.isin(read, list(task.tokenizer.special_ids.values()))]
    assert sorted(text) == sorted(task.validation.ids)


@pytest.mark.parametrize(
    ("text", "message"),
    [("one line of text here\n", "training text: "), (words(40), "tokens, none of them hidden")],
)
def test_too_little_text_is_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(
            ["train", "bert", str(tmp_path / "one.txt"), "--block-size", "16", "--out", str(tmp_path / "run")]
        )
    err = capsys.readouterr().err
    assert stop.value.code == 2 and message in err and "more text" in err
    assert not (tmp_path / "run").exists()
