"""The vocabulary as an ordered set, and what every tokenizer with special tokens promises about them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text import (
    TextbookBPETokenizer,
    Tokenizer,
    UnigramTokenizer,
    Vocabulary,
    WordPieceTokenizer,
    WordTokenizer,
    from_dict,
)
from tests.text.strategies import a_text

SPECIAL = ("<S>", "<E>", "[START]", "[END]", "[MASK]", "[CLS]", "[SEP]", "[PAD]")
TEXT = (
    "<S> <E> [START] [END] [MASK] [CLS] [SEP] [PAD] " * 20 + "low lower lowest new newer don't stop (ever).\n"
)


def trained() -> dict[str, Tokenizer]:
    return {
        "word": WordTokenizer.train(TEXT, special_tokens=SPECIAL),
        "plain-bpe": TextbookBPETokenizer.train(TEXT, special_tokens=[*SPECIAL, "<unk>"]),
        "wordpiece": WordPieceTokenizer.train(TEXT, 120, special_tokens=SPECIAL),
        "unigram": UnigramTokenizer.train(TEXT, 400, special_tokens=SPECIAL),
        "unigram without bytes": UnigramTokenizer.train(
            TEXT, 150, byte_fallback=False, special_tokens=SPECIAL
        ),
    }


TOKENIZERS = trained()


@pytest.mark.requirement("R-264")
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_special_tokens_have_ids_that_no_text_gets(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    vocabulary = tokenizer.vocabulary  # type: ignore[attr-defined]
    assert sorted(vocabulary.ids.values()) == list(range(tokenizer.vocab_size))  # dense
    assert [vocabulary.tokens[vocabulary.ids[name]] for name in SPECIAL] == list(SPECIAL)
    special = {vocabulary.ids[name] for name in SPECIAL}
    for text in (*SPECIAL, "".join(SPECIAL), " ".join(SPECIAL), TEXT):
        assert not special & set(tokenizer.encode(text).tolist())
    assert len(tokenizer.encode("[MASK]")) >= 1  # it is text like any other


@pytest.mark.requirement("R-264")
def test_decoding_restores_the_text() -> None:
    for text in (TEXT, "new (lower) low.", "newest"):
        for kind in ("plain-bpe", "unigram"):
            assert TOKENIZERS[kind].decode(TOKENIZERS[kind].encode(text)) == text
    assert TOKENIZERS["word"].decode(TOKENIZERS["word"].encode("new (lower) low.")) == "new (lower) low."
    assert TOKENIZERS["wordpiece"].decode(TOKENIZERS["wordpiece"].encode("newer low.")) == "newer low."


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=150)
@given(text=a_text)
def test_any_text_can_be_encoded_and_decoded(kind: str, text: str) -> None:
    """The fuzz test: whatever comes, ids are in range and decoding them works."""
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text)
    assert ids.dtype == "int32" and ids.ndim == 1
    again = tokenizer.decode(ids)
    if kind == "unigram" or (kind == "plain-bpe" and "<unk>" not in again):
        assert again == text


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_description_survives_json(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    again = from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    assert again == tokenizer and type(again) is type(tokenizer)
    assert again.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("broken", [{"tokens": 3}, {"tokens": ["a", 3]}, {"special": None}])
def test_broken_descriptions_are_refused(kind: str, broken: dict[str, object]) -> None:
    with pytest.raises(FormatError, match="must be a list of strings"):
        from_dict(TOKENIZERS[kind].to_dict() | broken)


def test_a_vocabulary_has_each_token_once_and_holds_its_special_tokens() -> None:
    with pytest.raises(DataError, match="'a' occurs twice"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(DataError, match="no token '<S>' among its 1 tokens"):
        Vocabulary(["a"], ["<S>"])
    with pytest.raises(DataError, match="no tokens"):
        Vocabulary([])


def test_a_vocabulary_must_have_room_for_what_every_text_needs() -> None:
    for train in (TextbookBPETokenizer.train, WordPieceTokenizer.train, UnigramTokenizer.train):
        with pytest.raises(ConfigError, match=r"vocab_size is 3 \(must be at least \d+"):
            train("low lower lowest", 3)
    with pytest.raises(ConfigError, match="vocab_size is 0"):
        WordTokenizer.train("low", 0)
