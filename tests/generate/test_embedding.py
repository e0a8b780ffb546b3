"""Vectors of texts: pooling, length, order, and models that make none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.generate import embed, nearest
from chainrule.models import fine_tune, make

TEXT = "the cat sat on the mat. a dog ran to the door of the house."
TOKENIZER = cr.text.WordPieceTokenizer.train(TEXT * 9, 60)
SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_hidden": 24, "block_size": 9}
TEXTS = ["the cat sat.", "a dog", "", "the cat sat on the mat. a dog ran to the door."]


def bert(name: str = "bert", **more: Any) -> Any:
    cr.seed(1)
    model = make(name, **SIZES, vocab_size=TOKENIZER.vocab_size, **more)
    for _, param in model.named_parameters():
        param.data += 0.3 * np.random.default_rng(0).normal(size=param.shape).astype(np.float32)
    return model


def rows_of(model: Any, text: str, limit: int = 7) -> np.ndarray:
    """The hidden rows (T, C) of one text by itself."""
    ids = [TOKENIZER.special_ids["[CLS]"], *TOKENIZER.encode(text)[:limit], TOKENIZER.special_ids["[SEP]"]]
    with cr.no_grad():
        hidden: np.ndarray = model.bert(np.array([ids])).numpy()[0]
    return hidden


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_each_text_has_the_vector_that_it_has_alone(batch_size: int) -> None:
    model = bert().eval()
    pooled = {"mean": lambda x: x.mean(0), "cls": lambda x: x[0], "max": lambda x: x.max(0)}
    for pooling, of in pooled.items():
        found = embed(model, TOKENIZER, TEXTS, pooling=pooling, normalize=False, batch_size=batch_size)
        want = np.stack([of(rows_of(model, text)) for text in TEXTS])
        np.testing.assert_allclose(found, want, atol=1e-5)
        unit = embed(model, TOKENIZER, TEXTS, pooling=pooling, batch_size=batch_size)
        np.testing.assert_allclose(unit, want / np.linalg.norm(want, axis=1, keepdims=True), atol=1e-5)
    assert found.dtype == np.float32 and not model.training


def test_an_embedder_says_itself_how() -> None:
    model = bert("bert-embedder", pooling="max", normalize=False, max_length=5).eval()
    found = embed(model, TOKENIZER, TEXTS)
    want = np.stack([rows_of(model, text, limit=3).max(0) for text in TEXTS])
    np.testing.assert_allclose(found, want, atol=1e-5)
    other = embed(model, TOKENIZER, TEXTS, pooling="mean", normalize=True)
    np.testing.assert_allclose(np.linalg.norm(other, axis=1), 1, atol=1e-5)


def test_dropout_is_off_and_the_mode_comes_back() -> None:
    model = bert(dropout=0.5)
    first = embed(model, TOKENIZER, TEXTS)
    assert (first == embed(model, TOKENIZER, TEXTS)).all() and model.training


def test_a_body_alone_and_a_head_on_it() -> None:
    model = bert("bert-classifier", classes=2)
    found = [
        embed(each, TOKENIZER, TEXTS)
        for each in (model, model.bert, fine_tune(model.bert, cr.models.BERTTagger))
    ]
    assert (found[0] == found[1]).all() and (found[1] == found[2]).all()


def test_no_texts() -> None:
    assert embed(bert(), TOKENIZER, []).shape == (0, 16)


def test_the_nearest_are_by_cosine() -> None:
    vectors = np.array([[1, 0], [5, 1], [0, 1], [-1, 0]], np.float32)
    places, cosines = nearest(vectors, 2)
    assert places.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    assert cosines[0, 0] == pytest.approx(5 / 26**0.5)
    assert nearest(vectors, 9)[0].shape == (4, 3)  # there are no more


def test_many_are_compared_in_pieces() -> None:
    vectors = np.random.default_rng(0).normal(size=(1500, 3)).astype(np.float32)
    places, _ = nearest(vectors, 1)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    all_of_them = unit @ unit.T - 2 * np.eye(1500)
    assert (places[:, 0] == all_of_them.argmax(axis=1)).mean() > 0.999


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (make("gpt", n_layer=1, n_head=1, n_embd=4), {}, r"embed: GPT \(must be a model with a BERT inside"),
        (bert(), {"pooling": "min"}, "embed: pooling is 'min'|embed: pooling is min"),
        (bert(), {"batch_size": 0}, "embed: batch_size is 0"),
    ],
)
def test_misuse_is_named(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        embed(model, TOKENIZER, TEXTS, **options)
