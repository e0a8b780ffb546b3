"""Batches of tagged sentences: every word has one place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, SpecialIds, TaggedBatches, encode_words
from chainrule.errors import DataError
from chainrule.text import BPETokenizer, WordPieceTokenizer

TOKENIZER = WordPieceTokenizer.train("the lower the better; a lowly tower!", 45)
SPECIAL = SpecialIds.of(TOKENIZER.special_ids)
words = st.lists(st.text("lowerthbay;! \x01é", min_size=1, max_size=6), min_size=1, max_size=8)


@settings(max_examples=60)
@given(words)
def test_every_word_has_a_place_of_its_own(words: list[str]) -> None:
    ids, firsts = encode_words(TOKENIZER, words)
    assert len(firsts) == len(words) and firsts[0] == 0 and (np.diff(firsts) > 0).all()
    for word, part in zip(words, np.split(ids, firsts[1:]), strict=True):
        want = TOKENIZER.encode(word)
        assert part.tolist() == (want.tolist() or [TOKENIZER.special_ids["[UNK]"]])


def test_batches_hold_each_tag_at_the_first_token_of_its_word() -> None:
    sentences = [(["the", "lower", "tower", "!"], [0, 1, 2, 3]), (["a", "better"], [4, 5]), (["lowly"], [6])]
    encoded = [(*encode_words(TOKENIZER, words), tags) for words, tags in sentences]
    batches = TaggedBatches(encoded, special=SPECIAL, batch_size=3, block_size=32)
    (((ids, mask, segments), labels),) = batches.once()
    assert ids.shape == mask.shape == segments.shape == labels.shape and not segments.any()
    for row in range(3):
        found = labels[row][labels[row] != IGNORE].tolist()
        words, tags = next(s for s in sentences if s[1] == found)
        places = np.flatnonzero(labels[row] != IGNORE)
        assert [int(ids[row, place]) for place in places] == [
            int(TOKENIZER.encode(word)[0]) for word in words
        ]
        assert mask[row][places].all() and len(tags) == len(places)
    assert batches.truncated == 0.0 and batches.tokens == 7
    _, drawn = batches.batch(5)
    assert sorted(drawn[drawn != IGNORE].tolist()) == list(range(7))


def test_long_sentences_lose_their_end() -> None:
    encoded = [(*encode_words(TOKENIZER, ["the"] * 10), list(range(10)))]
    batches = TaggedBatches(encoded, special=SPECIAL, batch_size=1, block_size=8)
    ((ids, _, _), labels) = batches.batch(0)
    assert ids.shape == (1, 8) and ids[0, -1] == SPECIAL.sep
    assert labels.tolist() == [[IGNORE, 0, 1, 2, 3, 4, 5, IGNORE]] and batches.truncated == 1.0


def test_a_tokenizer_without_unk_serves_where_every_word_has_tokens() -> None:
    tokenizer = BPETokenizer.train("the lower the better", 270, special_tokens=["[CLS]", "[SEP]"])
    ids, firsts = encode_words(tokenizer, ["the", "lower"])
    assert tokenizer.decode(ids[firsts[1] :]) == "lower"
    with pytest.raises(DataError, match=r"the word '' has no tokens \(must .*\[UNK\]"):
        encode_words(tokenizer, ["the", ""])
