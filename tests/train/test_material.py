"""What a run reads: the same text to be judged by for every tokenizer, and its true length."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule.data import Corpus, load, split
from chainrule.text import (
    BPETokenizer,
    CharTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from chainrule.train import Ladder
from chainrule.train.material import Material

TEXT = load("pydoc").text[:40_000] + "é"
HELD_OUT = split(TEXT)[1]
CORPUS = Corpus("some", "test", TEXT)
TOKENIZERS = [
    CharTokenizer.train(TEXT),
    WordTokenizer.train(TEXT, 200, lowercase=True),  # loses white space, case and rare words
    WordPieceTokenizer.train(TEXT, 400),
    UnigramTokenizer.train(TEXT, 400),
    BPETokenizer.train(TEXT, 400),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.kind)
def test_bits_are_per_byte_of_the_text_itself_whatever_the_tokenizer_loses(tokenizer: Tokenizer) -> None:
    material = Material.of(CORPUS, tokenizer)
    assert np.array_equal(material.validation, tokenizer.encode(HELD_OUT))
    per_token = len(HELD_OUT.encode()) / len(material.validation)
    assert material.bits_per_byte(math.log(2)) == pytest.approx(1 / per_token)
    assert Ladder(CORPUS, tokenizer=tokenizer).bits(math.log(2)) == pytest.approx(1 / per_token)


def test_characters_are_cut_where_their_tokens_would_be() -> None:
    tokenizer = TOKENIZERS[0]
    for n in (15, 16, 1005, len(TEXT)):
        material = Material.of(Corpus("some", "test", TEXT[:n]), tokenizer)
        training, validation = split(tokenizer.encode(TEXT[:n]))
        assert np.array_equal(material.training, training) and training.dtype == material.training.dtype
        assert np.array_equal(material.validation, validation)
