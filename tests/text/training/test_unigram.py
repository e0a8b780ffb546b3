"""Training of the Unigram tokenizer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule import native
from chainrule.data import load
from chainrule.errors import DataError
from chainrule.text import UnigramTokenizer
from chainrule.text.training.unigram import Settings, best_cut, digamma, expect, train
from tests.text.reference import without_extension

TEXT = load("pydoc").text[:20_000]


@pytest.mark.parametrize("pieces", [120, 700])
def test_native_training_equals_the_reference(pieces: int) -> None:
    text = TEXT[:4000] + "你好世界 Ünïcödé naïve café " * 3 + "a" * 500
    fast = UnigramTokenizer.train(text, pieces, byte_fallback=False)
    with without_extension():
        plain = UnigramTokenizer.train(text, pieces, byte_fallback=False)
    assert fast.vocabulary.tokens == plain.vocabulary.tokens
    np.testing.assert_allclose(fast.scores, plain.scores, rtol=1e-9)


@pytest.mark.parametrize("texts", ["", [], [""]])
def test_no_text_is_refused_with_and_without_a_compiler(texts: str | list[str]) -> None:
    with pytest.raises(DataError, match="unigram: no text to learn from"):
        UnigramTokenizer.train(texts, 300)
    with without_extension(), pytest.raises(DataError, match="unigram: no text to learn from"):
        UnigramTokenizer.train(texts, 300)


def test_expected_counts_are_those_of_all_cuts() -> None:
    scores = {"a": math.log(0.5), "b": math.log(0.3), "ab": math.log(0.2)}
    expected = expect({"ab": 2}, scores)
    share = 0.2 / (0.2 + 0.5 * 0.3)  # of the cut in one piece
    assert expected["ab"] == pytest.approx(2 * share)
    assert expected["a"] == expected["b"] == pytest.approx(2 * (1 - share))
    assert best_cut("ab", scores) == ["ab"]
    for x in (0.5, 1.0, 6.9, 30.5):
        assert digamma(x) == pytest.approx((math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5, abs=1e-8)


def test_training_finds_the_words() -> None:
    scores = train(["the cat and the dog and the cat " * 20], Settings(24))
    assert {"the ", " the", " cat", " and"} & scores.keys() >= {" the", " cat", " and"}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert sum(map(math.exp, scores.values())) == pytest.approx(1, abs=0.05)


def test_threads_do_not_change_what_is_learned() -> None:
    before = native.get_threads()
    try:
        native.set_threads(1)
        one = UnigramTokenizer.train(TEXT, 500)
        native.set_threads(3)
        assert UnigramTokenizer.train(TEXT, 500) == one
    finally:
        native.set_threads(before)
