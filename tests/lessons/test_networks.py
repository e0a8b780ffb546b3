"""The networks of the lessons: right gradients, padding unseen, what order tells, what is copied."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.lessons.networks.induction import START, induction_gpt
from chainrule.lessons.networks.rnn_seq2seq import AttentiveEncoderDecoder, EncoderDecoder
from chainrule.lessons.networks.sequence_classifier import (
    AttentionClassifier,
    BagOfWords,
    RecurrentClassifier,
    SequenceClassifier,
)

KINDS = {
    "bag": lambda: BagOfWords(9, 6, 3),
    "rnn": lambda: RecurrentClassifier(nn.RNN, 9, 6, 3),
    "gru": lambda: RecurrentClassifier(nn.GRU, 9, 6, 3),
    "lstm": lambda: RecurrentClassifier(nn.LSTM, 9, 6, 3),
    "attention": lambda: AttentionClassifier(9, 6, 3),
}
IDS = np.random.default_rng(0).integers(1, 9, size=(3, 7))
LENGTHS = np.array([7, 4, 1])


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> SequenceClassifier:
    cr.seed(1)
    return KINDS[request.param]()


def test_every_gradient_of_a_classifier(model: SequenceClassifier) -> None:
    model.to(np.float64)
    labels = np.array([2, 0, 1])
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(IDS, LENGTHS, labels)) < 1e-6


def test_padding_changes_nothing(model: SequenceClassifier) -> None:
    logits = model(IDS, LENGTHS).numpy()
    for row, length in enumerate(LENGTHS):
        alone = model(IDS[row : row + 1, :length], LENGTHS[row : row + 1]).numpy()
        np.testing.assert_allclose(logits[row], alone[0], rtol=1e-4, atol=1e-6)
    assert logits.shape == (3, 3)


@pytest.mark.requirement("R-232")
def test_a_bag_of_words_cannot_tell_good_not_bad_from_bad_not_good(model: SequenceClassifier) -> None:
    """One model serves texts of any length; all but the bag of words see the order."""
    words = {word: i for i, word in enumerate(["the", "food", "was", "good", ",", "not", "bad"])}
    texts = ["the food was good , not bad", "the food was bad , not good"]
    one, two = (np.array([[words[w] for w in text.split()]]) for text in texts)
    a, b = (model(ids, np.array([7])).numpy() for ids in (one, two))
    assert np.allclose(a, b, atol=1e-6) == isinstance(model, BagOfWords)
    for T in (1, 3, 60):
        assert model(np.ones((2, T), int), np.full(2, T)).shape == (2, 3)


@pytest.mark.parametrize("cls", [EncoderDecoder, AttentiveEncoderDecoder])
def test_encoder_and_decoder(cls: type[EncoderDecoder]) -> None:
    cr.seed(1)
    model = cls(9, 6).to(np.float64)
    inputs = np.roll(IDS, 1, axis=1)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(IDS, inputs, IDS)) < 1e-6
    logits = model(IDS, inputs[:, :4]).numpy()
    assert logits.shape == (3, 4, 9)
    np.testing.assert_allclose(model(IDS, inputs).numpy()[:, :4], logits, rtol=1e-10)  # no look ahead
    other = IDS.copy()
    other[:, 0] = (other[:, 0] + 1) % 9
    assert (model(other, inputs).numpy() != model(IDS, inputs).numpy()).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bag_is_the_mean_of_its_words_to_the_last_bits(dtype: type) -> None:
    cr.seed(1)
    bag = BagOfWords(9, 6, 3).to(dtype)
    want = [bag.embedding.weight.data[row[:n]].mean(axis=0) for row, n in zip(IDS, LENGTHS, strict=True)]
    got = bag.summary(IDS, LENGTHS).numpy()
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=16 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


def test_the_induction_circuit_continues_every_repetition() -> None:
    model = induction_gpt(vocab_size=12, block_size=16)
    rng = np.random.default_rng(0)
    for _ in range(20):
        letters = 1 + rng.permutation(11)[: rng.integers(2, 8)]
        ids = np.concatenate([[START], letters, letters])
        found = model(ids[None]).numpy()[0].argmax(-1)
        assert found[len(letters) + 1 : -1].tolist() == letters[1:].tolist()
