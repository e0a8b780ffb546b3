"""Training of byte-level BPE: the C++ code and the reference learn the same merges."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule import native
from chainrule.text import BPETokenizer
from chainrule.text.splitting.patterns import PATTERNS
from chainrule.text.splitting.pretokenize import split
from chainrule.text.training import bpe as reference


@given(
    st.lists(st.text("ab c\n'é1", max_size=30), max_size=8), st.integers(0, 60), st.sampled_from([*PATTERNS])
)
def test_training_is_that_of_the_reference(texts: list[str], limit: int, pattern: str) -> None:
    tokenizer = BPETokenizer.train(texts, 256 + limit, pattern=pattern, min_count=1)
    words = Counter(word for text in texts for word in split(text.encode(), pattern))
    merges = reference.train(words, limit, least=1)
    assert [tuple(row) for row in tokenizer.merges.tolist()] == merges
    assert (
        tokenizer.vocab_size == len(tokenizer.ids) == 256 + len(merges)
    )  # never two merges to the same bytes


def test_ties_go_to_the_smaller_pair_of_ids() -> None:
    tokenizer = BPETokenizer.train("ba dc", 258, min_count=1)
    assert [tokenizer.tokens[id] for id in (256, 257)] == [b"ba", b"dc"]
    tokenizer = BPETokenizer.train("!b b!", 258, min_count=1, pattern="gpt2")  # '!' is token 0
    assert tokenizer.vocab_size == 257 and tokenizer.tokens[256] == b" b"


def test_words_do_not_span_texts_and_rare_pairs_stay_apart() -> None:
    assert BPETokenizer.train(["a", "b"] * 10, 300).vocab_size == 256
    assert BPETokenizer.train(["ab"], 300).vocab_size == 256
    assert BPETokenizer.train(["ab", "ab"], 300).vocab_size == 257


@pytest.mark.skipif(not native.available(), reason="the reference is quadratic")
def test_training_on_one_endless_word() -> None:
    letters = np.random.default_rng(0).integers(97, 123, 300_000, dtype=np.uint8).tobytes().decode()
    start = time.process_time()
    tokenizer = BPETokenizer.train([letters, "a" * 300_000], 2000)
    assert time.process_time() - start < 10
    assert tokenizer.vocab_size == 2000
    assert tokenizer.decode(tokenizer.encode(letters)) == letters
