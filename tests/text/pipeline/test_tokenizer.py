"""A pipeline as a whole: added tokens, normalizer, words, model, and back."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given

from chainrule.errors import ChainruleError, DataError, FormatError
from chainrule.text import PipelineTokenizer, TextStream, from_dict
from chainrule.text.pipeline import AddedToken, decoders, normalizers, pretokenizers
from chainrule.text.pipeline.models import BPE, WordPiece
from chainrule.text.pipeline.part import Find
from chainrule.text.unicode.byte_alphabet import BYTES_IN_ORDER, show
from chainrule.text.unigram import BYTES
from tests.text.strategies import a_text

ALPHABET = {show(bytes([byte])): id for id, byte in enumerate(BYTES_IN_ORDER)}


def byte_level(**options: Any) -> PipelineTokenizer:
    """Single bytes and a few merges, after NFC."""
    merges = [("l", "o"), ("lo", "w"), ("Ġ", "low")]
    vocab = ALPHABET | {"lo": 256, "low": 257, "Ġlow": 258}
    byte_level = pretokenizers.ByteLevel(add_prefix_space=False)
    added = [
        AddedToken(259, "<|end|>", special=True),
        AddedToken(260, "<tool>"),
        AddedToken(262, "Ça", normalized=True),
    ]
    parts = {
        "normalizer": normalizers.NFC(),
        "pre_tokenizer": pretokenizers.Sequence((pretokenizers.Digits(True), byte_level)),
        "decoder": decoders.ByteLevel(),
        "added": added,
    }
    return PipelineTokenizer(BPE(vocab, merges), **parts | options)


def with_bytes() -> PipelineTokenizer:
    """SentencePiece's: a space before the text, symbols, bytes for the rest."""
    vocab = {token: id for id, token in enumerate(["<unk>", "<s>", *BYTES, "▁", "a", "▁a", "<sym>"])}
    steps = (normalizers.Prepend("▁"), normalizers.Replace(Find(" ", literal=True), "▁"))
    back = (decoders.Replace(Find("▁", literal=True), " "), decoders.ByteFallback(), decoders.Fuse())
    return PipelineTokenizer(
        BPE(vocab, [("▁", "a")], unk_token="<unk>", byte_fallback=True),
        normalizer=normalizers.Sequence(steps),
        decoder=decoders.Sequence((*back, decoders.Strip(" ", 1, 0))),
        added=[AddedToken(id, name, special=True) for id, name in enumerate(["<unk>", "<s>"])],
        symbols={"<sym>": vocab["<sym>"]},
        around=(("<s>",), ()),
    )


def test_special_tokens_are_found_when_asked_for_and_others_always() -> None:
    tokenizer = byte_level()
    assert tokenizer.encode("low<tool> low").tolist() == [257, 260, 258]
    assert len(tokenizer.encode("low<|end|>")) == 8
    assert tokenizer.encode("low<|end|>", special="all").tolist() == [257, 259]
    assert tokenizer.encode("C\u0327a").tolist() == [262]  # found in the normalized text
    with pytest.raises(DataError, match="'<tool>' is not a special token"):
        tokenizer.encode("", special=["<tool>"])


def test_names_and_sizes() -> None:
    tokenizer = byte_level()
    assert tokenizer.vocab_size == 263 and tokenizer.special_ids == {"<|end|>": 259}
    assert tokenizer.pieces("low 12") == ["low", "Ġ", "1", "2"]
    assert (tokenizer.piece(258), tokenizer.piece(261)) == ("Ġlow", "")  # an id without a token
    assert repr(tokenizer) == "<PipelineTokenizer, 263 tokens>"


def test_a_text_that_continues_another_gets_no_space() -> None:
    tokenizer = with_bytes()
    ids = [*tokenizer.encode("a").tolist(), *tokenizer.encode_inside(" a").tolist()]
    assert ids == tokenizer.encode("a a").tolist()
    assert [tokenizer.piece(id) for id in tokenizer.encode_inside("a a")] == ["a", "▁a"]
    first = pretokenizers.Metaspace(prepend_scheme="first")
    words = PipelineTokenizer(WordPiece({"[UNK]": 0, "a": 1, "▁a": 2}), pre_tokenizer=first)
    assert (words.encode("a").tolist(), words.encode_inside("a").tolist()) == ([2], [1])


def test_symbols_stand_in_the_normalized_text() -> None:
    tokenizer = with_bytes()
    assert tokenizer.pieces("<sym> a<sym>") == ["▁", "<sym>", "▁a", "<sym>"]
    assert tokenizer.decode(tokenizer.encode("<sym> a ö")) == "<sym> a ö"


@given(a_text)
def test_bytes_lose_nothing_but_surrogates(text: str) -> None:
    valid = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for tokenizer in (byte_level(normalizer=None), with_bytes()):
        if "▁" not in valid:
            assert tokenizer.decode(tokenizer.encode(text)) == valid


@pytest.mark.parametrize("make", [byte_level, with_bytes])
def test_a_description_gives_the_same_tokenizer(make: Any) -> None:
    tokenizer = make()
    again = from_dict(tokenizer.to_dict())
    assert again == tokenizer == pickle.loads(pickle.dumps(tokenizer))
    text = "low <sym> 12 é中 <tool>"
    assert again.encode(text).tolist() == tokenizer.encode(text).tolist()
    assert isinstance(again, PipelineTokenizer) and again.around == tokenizer.around


@pytest.mark.parametrize("make", [byte_level, with_bytes])
@given(text=a_text)
def test_a_stream_gives_whole_characters(make: Any, text: str) -> None:
    tokenizer = make()
    ids = tokenizer.encode(text).tolist()
    stream = TextStream(tokenizer)
    parts = [stream.push(id) for id in ids]
    assert "".join([*parts, stream.close()]) == tokenizer.decode(ids)
    assert "\ufffd" in text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") or not any(
        part.endswith("\ufffd") for part in parts
    )


def test_an_unfinished_character_comes_at_the_end() -> None:
    stream = TextStream(byte_level())
    first, second = byte_level().encode("é").tolist()
    assert [stream.push(first), stream.close(), stream.push(first), stream.push(second)] == [
        "",
        "\ufffd",
        "",
        "é",
    ]


def test_without_a_decoder_tokens_are_joined_by_spaces() -> None:
    tokenizer = PipelineTokenizer(
        WordPiece({"[UNK]": 0, "a": 1}), pre_tokenizer=pretokenizers.WhitespaceSplit()
    )
    assert tokenizer.decode(tokenizer.encode("a b  a")) == "a [UNK] a"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"added_tokens": None}, "added_tokens is None"),
        ({"symbols": {"a": "b"}}, "symbols is"),
        ({"around": [["<s>"]]}, "around is"),
        ({"around": [["<x>"], []]}, "'<x>' is not in the vocabulary"),
        ({"model": {}}, "model None is not supported"),
        ({"normalizer": {"type": "X"}}, "normalizer X is not supported"),
        ({"added_tokens": [{"id": 10**9, "content": "x"}]}, "id 1000000000"),
        ({"added_tokens": [{"id": 2, "content": "x"}]}, "id 2 is that of"),
    ],
)
def test_a_description_that_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_dict(with_bytes().to_dict() | change)


def test_ids_outside_the_vocabulary_are_named() -> None:
    with pytest.raises(ChainruleError, match="id 263 at position 0"):
        byte_level().decode([263])
