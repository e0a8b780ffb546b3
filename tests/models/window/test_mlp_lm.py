"""The MLP of Bengio et al.: shapes, gradients, batch norm and its folding, learning names, writing them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.autograd.types import Array
from chainrule.data import Document, Parts, Segmented, Split
from chainrule.doctor import verdict
from chainrule.errors import ConfigError
from chainrule.generate import documents, known_fraction, score
from chainrule.lessons import grid_search
from chainrule.models import (
    IGNORE,
    MLPLM,
    LanguageModel,
    MLPConfig,
    NeuralNGram,
    NeuralNGramConfig,
    NGram,
    make,
)
from chainrule.optim import AdamW, cosine
from chainrule.random import generator
from tests.models.words import short_words

TINY = MLPConfig(block_size=3, n_embd=4, n_hidden=9, n_layer=2, vocab_size=7)


def model_of(config: MLPConfig = TINY) -> MLPLM:
    cr.seed(0)
    return MLPLM(config)


def float64(config: MLPConfig = TINY) -> MLPLM:
    """A model in float64, its parameters moved away from their start."""
    model = model_of(config).to(np.float64)
    rng = np.random.default_rng(2)
    model.load({n: a + 0.2 * np.abs(rng.normal(size=a.shape)) for n, a in model.state().items()})
    return model


def ids_of(B: int = 4, T: int = 6) -> Array:
    return np.random.default_rng(1).integers(7, size=(B, T))


@pytest.mark.requirement("R-200")
@pytest.mark.parametrize(
    "config", [TINY, replace(TINY, batch_norm=False), replace(TINY, n_layer=1, batch_norm=False)]
)
def test_every_gradient_in_float64(config: MLPConfig) -> None:
    model, ids = float64(config), ids_of()
    targets = np.roll(ids, -1, axis=1)
    targets[0, 3:] = IGNORE
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(ids, targets)) <= 1e-6


@pytest.mark.requirement("R-200")
def test_shapes_and_the_plain_formula() -> None:
    """E-002-18: C (V, k), W1 (hidden, (n-1) k), b1 (hidden,), W2 (V, hidden), b2 (V,)."""
    model = float64(
        MLPConfig(block_size=3, n_embd=2, n_hidden=11, n_layer=1, vocab_size=27, batch_norm=False)
    )
    C, W1, b1, W2, b2 = (p.data for _, p in model.named_parameters())
    assert [a.shape for a in (C, W1, b1, W2, b2)] == [(28, 2), (11, 6), (11,), (27, 11), (27,)]
    XS = np.random.default_rng(0).integers(0, 27, (5, 3))
    want = np.tanh(C[XS].reshape(5, -1) @ W1.T + b1) @ W2.T + b2
    np.testing.assert_allclose(model.predict(XS).numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(model(XS).numpy()[:, -1], want, rtol=1e-12)  # the last position sees all three


@pytest.mark.requirement("R-201")
@pytest.mark.parametrize("hidden", [1, 10, 100])
@pytest.mark.parametrize("depth", [1, 3])
def test_any_width_and_depth(hidden: int, depth: int) -> None:
    config = replace(TINY, n_hidden=hidden, n_layer=depth)
    model = model_of(config)
    assert model(ids_of()).shape == (4, 6, 7)
    assert model.count() == config.n_params == sum(p.size for _, p in model.named_parameters())
    with cr.capture() as seen:
        model(ids_of())
    names = [name for name in seen if "batchnorm" in name or "linear" in name or "tanh" in name]
    order = [name.split(".")[-1].split("#")[0] for name in names]
    assert order == ["linear", "batchnorm", "tanh"] * depth + ["linear"]


@pytest.mark.requirement("R-203")
def test_logits_probabilities_and_loss_agree() -> None:
    model, ids = model_of().eval(), ids_of()
    targets = np.roll(ids, -1, axis=1)
    logits = model(ids).numpy()
    p = ops.softmax(logits)
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-6)
    picked = np.take_along_axis(p, targets[..., None], axis=-1)
    assert model.loss(ids, targets).item() == pytest.approx(-np.log(picked).mean(), rel=1e-5)
    for row, wanted, each in zip(ids, targets, picked, strict=True):  # what `score` and `eval` tell of a text
        np.testing.assert_allclose(score(model, row), np.log(p_of(model, row)), rtol=1e-4, atol=1e-6)
        one = np.log(each[:, 0])
        assert model.loss(row[None], wanted[None]).item() == pytest.approx(-one.mean(), rel=1e-5)


def p_of(model: MLPLM, ids: Array) -> Array:
    """Probabilities of the tokens of a text after the first, each given those before it"""
    return np.array([ops.softmax(model(ids[None, :t]).numpy()[0, -1])[ids[t]] for t in range(1, len(ids))])


@pytest.mark.requirement("R-203")
@pytest.mark.parametrize("kind", ["bert-classifier", "bert-tagger"])
def test_logits_probabilities_and_loss_of_a_classifier_agree(kind: str) -> None:
    cr.seed(0)
    model = make(
        kind, n_layer=1, n_head=2, n_embd=8, n_hidden=8, block_size=6, vocab_size=9, classes=3
    ).eval()
    ids, mask = np.random.default_rng(0).integers(9, size=(4, 6)), np.ones((4, 6), bool)
    inputs = Segmented(ids, mask, 0 * ids)
    labels = np.random.default_rng(1).integers(3, size=(4, 6) if kind == "bert-tagger" else 4)
    logits = model(*inputs).numpy()
    p = ops.softmax(logits)
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.log(p) - logits, (np.log(p) - logits)[..., :1].repeat(3, -1), atol=1e-5)
    picked = np.take_along_axis(p, labels[..., None], axis=-1)
    assert model.loss(inputs, labels).item() == pytest.approx(-np.log(picked).mean(), rel=1e-5)
    assert (logits.argmax(-1) == p.argmax(-1)).all()


@pytest.mark.parametrize("batch_norm", [False, True])
def test_the_first_loss_is_ln_v(batch_norm: bool) -> None:
    config = MLPConfig(vocab_size=50, batch_norm=batch_norm)
    ids = np.random.default_rng(0).integers(50, size=(64, 8))
    assert model_of(config).loss(ids, np.roll(ids, -1, axis=1)).item() == pytest.approx(
        math.log(50), rel=0.01
    )


@pytest.mark.requirement("R-209")
@pytest.mark.parametrize("depth", [1, 3])
def test_folded_equals_evaluation(depth: int) -> None:
    model = float64(replace(TINY, n_layer=depth))
    for _ in range(5):
        model.loss(ids_of(), ids_of())  # moves the running statistics
    assert all(layer.bias is None for layer in model.mlp.layers[:-1])
    plain = model.eval().folded()
    np.testing.assert_allclose(plain(ids_of()).numpy(), model(ids_of()).numpy(), rtol=0, atol=1e-10)
    assert not plain.config.batch_norm and not any("norm" in name for name in plain.state())
    with pytest.raises(ConfigError, match="nothing to fold"):
        plain.folded()


def test_the_statistics_ignore_padding() -> None:
    """A row and the same row with padding behind it: same loss, same running statistics."""
    ids, targets = ids_of(3, 4), np.roll(ids_of(3, 4), -1, axis=1)
    plain, padded = model_of(), model_of()
    losses = [
        plain.loss(ids, targets).item(),
        padded.loss(np.pad(ids, ((0, 0), (0, 5))), np.pad(targets, ((0, 0), (0, 5)), constant_values=IGNORE)),
    ]
    assert losses[0] == float(losses[1])
    for name, array in plain.named_buffers():
        assert (array == dict(padded.named_buffers())[name]).all()


def test_no_position_sees_a_later_token_or_more_than_its_window() -> None:
    model, ids = float64().eval(), ids_of()
    before = model(ids).numpy()
    for t in range(6):
        changed = ids.copy()
        changed[:, t] = (changed[:, t] + 1) % 7
        moved = (model(changed).numpy() != before).any(axis=(0, 2))
        assert moved.tolist() == [t <= at < t + 3 for at in range(6)]


def test_ids_of_few_bits_have_room_for_nothing_yet() -> None:
    model = model_of(replace(TINY, vocab_size=256)).eval()
    ids = np.full((1, 2), 255, np.uint8)
    assert (model(ids).numpy() == model(ids.astype(np.int64)).numpy()).all()


@pytest.mark.parametrize("field", ["block_size", "n_embd", "n_hidden", "n_layer", "vocab_size"])
def test_bad_sizes_are_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"MLP: {field} is 0"):
        replace(TINY, **{field: 0})


class Words:
    """Short words of the standard library: rows padded to the longest, in a random order fixed by the seed."""

    def __init__(self) -> None:
        words = short_words()
        self.train, self.validation = words[:2400], words[2400:2700]

    def batch(self, rows: list[Array]) -> tuple[Array, Array]:
        inputs = np.zeros((len(rows), 11), np.int64)
        targets = np.full((len(rows), 11), IGNORE)
        for row, inp, target in zip(rows, inputs, targets, strict=True):
            inp[1 : len(row) + 1] = target[: len(row)] = row
            target[len(row)] = 0
        return inputs, targets

    def fit(
        self, model: LanguageModel, rows: list[Array], steps: int, lr: float = 0.01, size: int = 64
    ) -> None:
        inputs, targets = self.batch(rows)
        optimizer = AdamW(model.parameters(), lr, weight_decay=0.0)
        rate = cosine(lr, steps)
        model.train()
        for step in range(steps):
            chosen = generator("order", step, seed=0).integers(len(rows), size=min(size, len(rows)))
            optimizer.zero_grad()
            model.loss(inputs[chosen], targets[chosen]).backward()
            optimizer.step(rate(step))

    def loss(self, model: LanguageModel, rows: list[Array]) -> float:
        with cr.no_grad():
            return model.eval().loss(*self.batch(rows)).item()


@pytest.fixture(scope="module")
def words() -> Words:
    return Words()


@pytest.fixture(scope="module")
def trained(words: Words) -> MLPLM:
    model = model_of(MLPConfig(block_size=4, n_embd=10, n_hidden=100, vocab_size=27))
    words.fit(model, words.train, 400)
    return model


@pytest.mark.requirement("R-202")
def test_mini_batches_bring_it_below_the_bigram(words: Words, trained: MLPLM) -> None:
    bigram = NGram.fit(words.train, order=2, vocab_size=27)
    finite = [w for w in words.validation if math.isfinite(bigram.nll([w]))]
    assert words.loss(trained, finite) < bigram.nll(finite) - 0.1


@pytest.mark.requirement("R-215")
def test_same_seed_same_words_through_a_sliding_window(trained: MLPLM) -> None:
    first = [w.tolist() for w in documents(trained, 40, seed=3)]
    assert first[:10] == [w.tolist() for w in documents(trained, 10, seed=3)]
    assert first[:10] != [w.tolist() for w in documents(trained, 10, seed=4)]
    assert all(0 not in w for w in first) and max(map(len, first)) < 100
    assert trained.contexts(np.array([first[0]])).shape[-1] == trained.config.block_size == 4
    for training in (True, False):
        documents(trained.train(training), 1, limit=2)
        assert trained.training is training
    cut = documents(trained, 5, limit=2, seed=3)
    assert [w.tolist() for w in cut] == [w[:2] for w in first[:5]]
    with pytest.raises(ConfigError, match="documents: 0 of"):
        documents(trained, 0)


@pytest.mark.requirement("R-207")
def test_a_memorizing_model_writes_only_what_it_read(words: Words) -> None:
    few = words.train[:12]
    cr.seed(1)
    memory = MLPLM(MLPConfig(block_size=10, n_embd=8, n_hidden=64, vocab_size=27, batch_norm=False))
    words.fit(memory, few, 200, size=12)
    bigram = NGram.fit(few, order=2, vocab_size=27)
    shares = [known_fraction(documents(memory, 200), few), known_fraction(bigram.sample(200), few)]
    assert shares[0] > 0.9 > 0.5 > shares[1]
    assert verdict(words.loss(memory, few), words.loss(memory, words.validation)) == "overfit"


class Sealed(list[Document]):
    """Documents that nobody may look at."""

    def __iter__(self) -> Iterator[Document]:
        raise AssertionError("the test documents were read")

    __getitem__ = __iter__  # type: ignore[assignment]


@pytest.mark.requirement("R-208")
def test_a_grid_is_sorted_by_validation_loss(words: Words) -> None:
    whole = Split(validation=0.1, test=0.2)(
        Document(bytes(w.tolist()).decode(), "words") for w in words.train
    )
    parts = Parts(whole.train, whole.validation, Sealed(whole.sealed))
    assert len(parts.sealed) > 300
    with pytest.raises(AssertionError, match="were read"):
        list(parts.sealed)

    def rows(documents: list[Document]) -> list[Array]:
        return [np.frombuffer(d.text.encode(), np.uint8).astype(int) for d in documents]

    def run(lr: float, n_hidden: int, n_embd: int) -> float:
        model = model_of(MLPConfig(block_size=3, n_embd=n_embd, n_hidden=n_hidden, vocab_size=27))
        words.fit(model, rows(parts.train), 40, lr)
        return words.loss(model, rows(parts.validation))

    trials = grid_search(run, lr=[1e-4, 1e-2], n_hidden=[4, 50], n_embd=[2, 10])
    losses = [trial.validation for trial in trials]
    assert len(trials) == 8 and losses == sorted(losses)
    assert trials[0].settings["lr"] == 1e-2 and trials[0].settings["n_hidden"] == 50
    assert run(**trials[0].settings) == losses[0]
    assert parts.openings == []
    order = [t.settings["x"] for t in grid_search(lambda x: x, x=[math.nan, 2.0, 1.0])]
    assert order[:2] == [1.0, 2.0]


def test_documents_of_a_neural_bigram_have_the_lengths_of_the_words(words: Words) -> None:
    model = NeuralNGram(NeuralNGramConfig(block_size=1, vocab_size=27))
    words.fit(model, words.train, 300, 0.1, size=256)
    lengths = [len(w) for w in documents(model, 2000)]
    assert np.mean(lengths) == pytest.approx(np.mean([len(w) for w in words.train]), rel=0.1)
