"""Texts as vectors: how large they are, and what a bag forgets."""

from __future__ import annotations

import re

import numpy as np
import pytest

from chainrule.errors import ConfigError, DataError
from chainrule.lessons.features import bag_of_ngrams, bag_of_words, padded_one_hot
from tests.vectors import vector

WORDS = ["bad", "good", "not", ","]


def encode(text: str) -> list[int]:
    return [WORDS.index(word) for word in re.findall(r"\w+|,", text)]


@pytest.mark.requirement("R-190")
def test_padded_one_hot_is_vocabulary_times_length() -> None:
    v = vector("004-6.2-onehot-input")
    V, T = v.inputs["factors"]
    rows = padded_one_hot([3, 1, 4], V, T)
    v.check(rows.size)
    assert rows.sum() == 3 and np.flatnonzero(rows[:3].any(axis=0)).tolist() == [1, 3, 4]


@pytest.mark.requirement("R-190")
def test_a_bag_of_words_loses_the_order_and_pairs_keep_some() -> None:
    one, other = encode("good, not bad"), encode("bad, not good")
    assert one != other
    assert (bag_of_words(one, 4) == bag_of_words(other, 4)).all()
    assert (padded_one_hot(one, 4, 6) != padded_one_hot(other, 4, 6)).any()
    assert bag_of_ngrams(one, 4, 2) != bag_of_ngrams(other, 4, 2)
    assert bag_of_ngrams(one, 4, 1) == {(i,): n for i, n in enumerate(bag_of_words(one, 4)) if n}


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match=r"ids \(1,\)"):
        bag_of_words([4], 4)
    for ids in ([0, 4], [-1, 0]):  # one of them is enough
        with pytest.raises(DataError, match=r"ids \(2,\)"):
            bag_of_words(ids, 4)
    with pytest.raises(DataError, match="3 tokens, length 2"):
        padded_one_hot([0, 1, 2], 4, 2)
    with pytest.raises(ConfigError, match="n is 0"):
        bag_of_ngrams([1], 4, 0)
