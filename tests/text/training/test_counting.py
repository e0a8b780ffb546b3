"""Counting with workers: parts that no word spans, and tokenizers that are those of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule import native
from chainrule.data import load
from chainrule.text import BPETokenizer, UnigramTokenizer, WordPieceTokenizer
from chainrule.text.training import counting
from chainrule.text.training.counting import parts

TEXT = load("pydoc").text[:120_000] + " naïve café ☃ ▁ 数学 don't  a\n\n\n b \u2029" * 50


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PART", 5000)


@pytest.mark.parametrize("kind", [BPETokenizer, UnigramTokenizer, WordPieceTokenizer])
def test_workers_learn_the_same_tokenizer(kind: Any) -> None:
    texts = [TEXT, "", "one short text", TEXT[:20_000]]
    expected = kind.train(texts, 700).to_dict()
    assert kind.train(iter(texts), 700, workers=2).to_dict() == expected


@given(texts=st.lists(st.text("ab \n.", max_size=60)))
def test_parts_are_the_texts_again(texts: list[str]) -> None:
    contents = [text.encode() for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "PART", 7)
        found = list(parts(contents))
    assert b"".join(content for content, _ in found) == b"".join(contents)
    assert all(ends[-1] == len(content) and (np.diff(ends) > 0).all() for content, ends in found)


def test_counts_that_do_not_fit_their_words_are_refused() -> None:
    if not native.available():
        return
    trainer = native.kernels().UnigramTrainer()
    with pytest.raises(ValueError, match="a count for each word"):
        trainer.add_counts(b"ab", np.array([1, 2]), np.array([3]))
    trainer.add_counts(b"ab", np.array([1, 2]), np.array([3, 4]))
    words, ends, counts = trainer.counts()
    assert (words, ends.tolist(), counts.tolist()) == (b"ab", [1, 2], [3, 4])
