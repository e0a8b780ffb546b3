"""Models are described and read again; what is wrong with a description is named."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.errors import FormatError
from chainrule.text.pipeline.model_files import read_model
from chainrule.text.pipeline.models import BPE, Model, Unigram, WordPiece

VOCAB = {"[UNK]": 0, "a": 1, "b": 2, "ab": 3, "##b": 4}


@pytest.mark.parametrize(
    "model",
    [
        BPE(VOCAB, [("a", "b")], unk_token="[UNK]", fuse_unk=True),
        BPE(VOCAB, [("a", "##b")], continuing_subword_prefix="##", ignore_merges=True),
        WordPiece(VOCAB, max_input_chars_per_word=7),
        Unigram([("[UNK]", 0.0), ("a", -1.5)], 0),
    ],
)
def test_a_model_comes_back(model: Model) -> None:
    again = read_model(model.to_dict())
    assert type(again) is type(model) and again.to_dict() == model.to_dict()
    assert again.ids("abba") == model.ids("abba")


def test_merges_may_be_texts() -> None:
    assert read_model({"type": "BPE", "vocab": VOCAB, "merges": ["a b"]}).ids("ab") == [3]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (None, "model is None"),
        ({"type": "WordLevel", "vocab": {}}, "model WordLevel is not supported"),
        ({"type": "BPE", "merges": []}, "BPE: the model has no vocab"),
        ({"type": "BPE", "vocab": {"a": "x"}, "merges": []}, "BPE: the model has no vocab"),
        ({"type": "BPE", "vocab": VOCAB}, "has no merges"),
        ({"type": "BPE", "vocab": VOCAB, "merges": ["a b c"]}, "merge 0"),
        ({"type": "BPE", "vocab": VOCAB, "merges": [], "dropout": 0.1}, "dropout 0.1 is not supported"),
        ({"type": "BPE", "vocab": VOCAB, "merges": [], "unk_token": 3}, "unk_token is 3"),
        ({"type": "WordPiece", "vocab": VOCAB, "max_input_chars_per_word": 0}, "must be an integer from 1"),
        ({"type": "Unigram", "vocab": [["a"]]}, "Unigram: the model has no vocab"),
        ({"type": "Unigram", "vocab": [["a", 0]], "unk_id": "a"}, "unk_id is a"),
        ({"type": "Unigram", "vocab": [["a", 0]]}, "unk_id is None"),
    ],
)
def test_what_cannot_be_read_is_named(description: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_model(description)
