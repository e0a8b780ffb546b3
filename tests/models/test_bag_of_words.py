"""A bag of words: tf-idf, logistic regression, and the penalty that training adds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule.errors import ConfigError, DataError
from chainrule.models import BagOfWords, BagOfWordsConfig, make
from chainrule.models.microbatch import Batch
from chainrule.train import TrainConfig, Trainer
from chainrule.train.log import Logger

IDS = np.array([[0, 1, 2], [1, 3, 0]])
COUNTS = np.array([[3, 1, 1], [2, 1, 0]])


def test_rare_words_count_more_and_a_row_has_length_1() -> None:
    model = make("bow-classifier", ngrams=1, vocab_size=4)
    model.bag.count_texts([np.array([0, 1, 2]), np.array([1, 3])])
    np.testing.assert_allclose(
        model.bag.idf, [1 + math.log(3 / 2), 1.0, 1 + math.log(3 / 2), 1 + math.log(3 / 2)]
    )
    x = model.bag.values(IDS, COUNTS)
    rare = 1 + math.log(3 / 2)
    row = np.array([(1 + math.log(3)) * rare, 1.0, rare])
    np.testing.assert_allclose(x[0], row / np.linalg.norm(row))
    np.testing.assert_allclose((x**2).sum(axis=1), 1)
    assert x[1, 2] == 0  # padding, whatever the id there


@pytest.mark.parametrize(("weighting", "row"), [("counts", [3.0, 1, 1]), ("binary", [1.0, 1, 1])])
def test_other_weightings(weighting: str, row: list[float]) -> None:
    model = make("bow-classifier", ngrams=1, vocab_size=4, weighting=weighting)
    np.testing.assert_allclose(model.bag.values(IDS, COUNTS)[0], np.array(row) / np.linalg.norm(row))


def test_logits_are_a_sum_over_words_and_a_text_without_words_gives_the_bias() -> None:
    model = make("bow-classifier", ngrams=1, vocab_size=4, classes=3)
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    model.load(model.state() | {"bag.weight": weight, "bias": np.array([1, 2, 3], np.float32)})
    dense = np.zeros((2, 4))
    np.put_along_axis(dense, IDS, model.bag.values(IDS, COUNTS), axis=1)
    np.testing.assert_allclose(model(IDS, COUNTS).numpy(), dense @ weight + [1, 2, 3], rtol=1e-5)
    np.testing.assert_allclose(model(IDS[:1, :0], COUNTS[:1, :0]).numpy(), [[1, 2, 3]])


def test_training_ends_where_the_penalized_loss_is_lowest() -> None:
    """The gradient there is 0; evaluation leaves the penalty out."""
    model = make("bow-classifier", ngrams=1, vocab_size=4, l2=0.1)
    batch = ((IDS, COUNTS), np.array([0, 1]))
    source = type(
        "", (), {"tokens": 2, "batch": lambda self, step: batch, "begins": lambda self, step: True}
    )()
    config = TrainConfig(max_steps=400, lr=0.05, weight_decay=0.0)
    Trainer(model, source, [], config).run(Logger())
    model.parameters().zero_grad()
    model.train().loss(*batch).backward()
    assert np.abs(model.parameters().grad).max() < 1e-4
    with_penalty, weight = model.loss(*batch).item(), model.bag.weight.numpy()
    assert with_penalty == pytest.approx(
        model.eval().loss(*batch).item() + 0.05 * (weight**2).sum(), rel=1e-5
    )


def test_sizes() -> None:
    assert BagOfWordsConfig(vocab_size=10, buckets=5, classes=3).n_params == 48
    assert BagOfWordsConfig(vocab_size=10, ngrams=1, classes=3).n_params == 33
    assert BagOfWords.abstract(BagOfWordsConfig(buckets=10**7)).bag.idf.strides == (
        0,
    )  # counted without memory
    for wrong in ({"ngrams": 0}, {"weighting": "idf"}, {"l2": -1}, {"classes": 1}, {"labels": ("a",)}):
        with pytest.raises(ConfigError, match="bag of words: "):
            BagOfWordsConfig(**wrong)  # type: ignore[arg-type]


def test_a_feature_that_is_not_there_is_refused() -> None:
    model = make("bow-classifier", vocab_size=10, ngrams=1, classes=3)
    with pytest.raises(DataError, match=r"id 10 at position \(0, 1\), vocabulary size is 10"):
        model.loss((np.array([[4, 10]]), np.ones((1, 2), int)), np.array([0]))


def test_rows_have_few_lengths() -> None:
    model = make("bow-classifier", vocab_size=10, ngrams=1, classes=3)
    for size in (1, 15, 16, 17):
        inputs = np.arange(2 * size).reshape(2, size) % 10, np.ones((2, size), int)
        prepared = model.prepared(Batch(inputs, np.zeros(2, int)))
        assert (
            prepared.inputs.values.shape == (2, 32 if size > 16 else 16)
            and model.prepared(prepared) is prepared
        )
        np.testing.assert_allclose((prepared.inputs.values**2).sum(axis=1), 1, rtol=1e-6)
        assert not prepared.inputs.values[:, size:].any()
