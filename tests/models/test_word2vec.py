"""word2vec: pairs, both losses, and that words which share contexts end up near each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError, DataError
from chainrule.models import CBOW, NOTHING, SkipGram, Word2VecConfig
from chainrule.models.word2vec import windows
from tests.vectors import vector


def ids_of(tokens: list[str]) -> tuple[list[str], list[int]]:
    words = list(dict.fromkeys(tokens))
    return words, [words.index(token) for token in tokens]


def model_of(kind: type, V: int, *, dim: int = 5, window: int = 2) -> SkipGram | CBOW:
    """A model whose tables are both random, in float64."""
    model = kind(Word2VecConfig(vocab_size=V, dim=dim, window=window)).to(np.float64)
    rng = np.random.default_rng(V)
    model.load({name: rng.normal(size=array.shape) for name, array in model.state().items()})
    return model


# -- pairs ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-252")
@pytest.mark.parametrize("name", ["004-7.3.2-window", "004-7.3.4-pairs"])
def test_the_words_around_a_centre(name: str) -> None:
    v = vector(name)
    words, ids = ids_of(v.inputs["tokens"])
    center, window = v.inputs["center"], v.inputs["window"]
    _, around = windows(ids, window)
    v.check([words[i] for i in around[center] if i != NOTHING])

    model = SkipGram(Word2VecConfig(vocab_size=len(words), dim=2, window=window))
    centers, contexts = model.examples(ids)
    before = sum(
        len(row[row != NOTHING]) for row in around[:center]
    )  # pairs come in the order of their centers
    count = len(v.recomputed)
    v.check([words[i] for i in contexts[before : before + count]])
    assert set(centers[before : before + count].tolist()) == {ids[center]}


@settings(max_examples=50)
@given(st.lists(st.integers(-1, 4), max_size=20), st.integers(1, 6))
def test_windows_are_those_of_a_loop(ids: list[int], window: int) -> None:
    want = []
    for p, word in enumerate(ids):
        for q in range(max(p - window, 0), min(p + window + 1, len(ids))):
            if q != p and NOTHING not in ids[min(p, q) : max(p, q) + 1]:
                want.append((word, ids[q]))
    model = SkipGram(Word2VecConfig(vocab_size=5, dim=1, window=window))
    centers, contexts = model.examples(np.array(ids, int))
    assert list(zip(centers.tolist(), contexts.tolist(), strict=True)) == want

    inputs, targets = CBOW(model.config).examples(np.array(ids, int))
    pairs = [(c, o) for c, row in zip(targets, inputs, strict=True) for o in row if o != NOTHING]
    assert pairs == want


# -- losses --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-253")
def test_two_tables_and_a_softmax_between_them() -> None:
    v = vector("der-skipgram-softmax")
    model = SkipGram(Word2VecConfig(vocab_size=3, dim=3)).to(np.float64)
    assert {name: array.shape for name, array in model.state().items()} == {
        "input.weight": (3, 3),
        "output.weight": (3, 3),
    }
    center = np.zeros((3, 3))
    center[1] = v.inputs["center"]
    model.load({"input.weight": center, "output.weight": np.array(v.inputs["contexts"])})
    scores = model(np.array([1])).numpy()[0]
    p = cr.ops.softmax(scores)
    v.check({"scores": scores, "p": p})
    loss = model.loss(np.array([1, 1]), np.array([0, 2])).item()
    assert loss == pytest.approx(-(np.log(p[0]) + np.log(p[2])) / 2, rel=1e-12)


@pytest.mark.requirement("R-253", "R-257")
@pytest.mark.parametrize("kind", [SkipGram, CBOW])
@pytest.mark.parametrize("sampled", [False, True])
def test_gradients(kind: type, sampled: bool) -> None:
    model = model_of(kind, 6)
    inputs, targets = model.examples([0, 1, 2, 3, NOTHING, 4, 1, 1, 5])
    negatives = np.random.default_rng(0).integers(0, 6, size=(len(targets), 3))
    loss = model.sampled_loss if sampled else model.loss
    cr.gradcheck_model(model.parameters(), lambda: loss(inputs, targets, *([negatives] if sampled else [])))


@pytest.mark.requirement("R-257")
def test_cbow_averages_its_window() -> None:
    model = model_of(CBOW, 6)
    inputs, targets = model.examples([3, 1, 4, NOTHING, 5, 5])
    assert inputs.tolist() == [
        [-1, -1, 1, 4],
        [-1, 3, 4, -1],
        [3, 1, -1, -1],
        [-1, -1, 5, -1],
        [-1, 5, -1, -1],
    ]
    assert targets.tolist() == [3, 1, 4, 5, 5]
    table = model.input.weight.array
    np.testing.assert_allclose(model.hidden(inputs).numpy()[1], (table[3] + table[4]) / 2, rtol=1e-14)


def test_at_first_every_word_is_as_likely_as_any_other() -> None:
    model = SkipGram(Word2VecConfig(vocab_size=50, dim=8))
    ids = np.arange(50)
    assert model.loss(ids, ids[::-1].copy()).item() == pytest.approx(np.log(50), rel=1e-6)
    assert np.abs(model.input.weight.array).max() <= 0.5 / 8


def test_softmax_training_by_the_tape_finds_who_stands_with_whom() -> None:
    """Full softmax and an optimizer of ours: P(o | c) approaches the frequencies of the text."""
    cr.seed(0)
    ids = np.array([0, 1, NOTHING, 0, 2, NOTHING, 0, 2, NOTHING, 3, 4, NOTHING] * 4)
    model = SkipGram(Word2VecConfig(vocab_size=5, dim=4, window=1))
    optimizer = cr.optim.Adam(model.parameters(), lr=0.05)
    centers, contexts = model.examples(ids)
    for _ in range(200):
        model.parameters().zero_grad()
        model.loss(centers, contexts).backward()
        optimizer.step()
    p = cr.ops.softmax(model(np.array([0])).numpy())[0]
    np.testing.assert_allclose(p, [0, 1 / 3, 2 / 3, 0, 0], atol=0.02)


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["vocab_size", "dim", "window"])
def test_sizes_are_positive(field: str) -> None:
    with pytest.raises(ConfigError, match=rf"word2vec: {field} is 0 \(must be at least 1\)"):
        Word2VecConfig(**{field: 0})


def test_a_text_is_a_row_of_integers() -> None:
    with pytest.raises(DataError, match=r"windows: got float64 \(2,\)"):
        windows([0.5, 1.0], 2)
