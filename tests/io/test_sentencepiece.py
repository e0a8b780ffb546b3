"""SentencePiece's models: pieces, normalization and symbols; damage and what we do not do is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ChainruleError, FormatError
from chainrule.io import load_tokenizer, save_tokenizer
from chainrule.text import PipelineTokenizer, SentencePieceBPETokenizer, Tokenizer
from chainrule.text.pipeline import normalizers
from chainrule.text.pipeline.charsmap import Charsmap
from chainrule.text.unigram import BYTES
from tests.io.sentencepiece_files import (
    BPE,
    BYTE,
    CHAR,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Piece,
    field,
    message,
    model,
)
from tests.text.pipeline.charsmaps import charsmap

HEAD: list[Piece] = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
WORDS: list[Piece] = [
    (text, -float(rank), NORMAL)
    for rank, text in enumerate(["lo", "▁lo", "low", "▁low", "▁", "l", "o", "w", "e"])
]
BYTE_PIECES: list[Piece] = [(name, 0.0, BYTE) for name in BYTES]
KEEP_SPACES: dict[int, Any] = {1: b"identity", 4: 0}


def read(tmp_path: Path, content: bytes) -> Tokenizer:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(content)
    return load_tokenizer(path)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.piece(id) for id in tokenizer.encode(text).tolist()]


def test_llamas_kind_has_the_class_of_its_own(tmp_path: Path) -> None:
    tokenizer = read(tmp_path, model([*HEAD, *BYTE_PIECES, *WORDS], normalizer=KEEP_SPACES))
    assert isinstance(tokenizer, SentencePieceBPETokenizer)
    assert pieces(tokenizer, "low  löw") == ["▁low", "▁", "▁", "l", "<0xC3>", "<0xB6>", "w"]
    assert tokenizer.special_ids == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert load_tokenizer(tmp_path) == tokenizer  # found in its directory


@pytest.mark.parametrize("kind", [BPE, UNIGRAM])
def test_extra_spaces_go_and_one_comes_before_the_text(kind: int, tmp_path: Path) -> None:
    tokenizer = read(tmp_path, model([*HEAD, *WORDS], kind=kind))
    assert isinstance(tokenizer, PipelineTokenizer)
    assert pieces(tokenizer, "  low   low xy ") == ["▁low", "▁low", "▁", "<unk>"]
    assert pieces(tokenizer, "   ") == [] == pieces(tokenizer, "")
    assert tokenizer.decode(tokenizer.encode(" low  e")) == "low e"
    inside = [[tokenizer.piece(id) for id in tokenizer.encode_inside(text)] for text in ("low", " low")]
    assert inside == [["low"], ["▁low"]]
    bare = read(tmp_path, model([*HEAD, *WORDS], kind=kind, normalizer=KEEP_SPACES | {3: 0}))
    assert pieces(bare, "low ") == ["low", "▁"] and bare.decode(bare.encode("low ")) == "low "


@pytest.mark.parametrize("kind", [BPE, UNIGRAM])
def test_the_charsmap_is_used(kind: int, tmp_path: Path) -> None:
    table = charsmap({"①": "low", "\t": " ", "\u200b": "", "L": "l"})
    tokenizer = read(tmp_path, model([*HEAD, *WORDS], kind=kind, normalizer={1: b"mine", 2: table}))
    assert pieces(tokenizer, "①\t\tLow\u200b") == ["▁low", "▁low"]
    kept = read(tmp_path, model([*HEAD, *WORDS], kind=kind, normalizer={2: table, 4: 0}))
    assert pieces(kept, "\u200b") == ["▁"]


@pytest.mark.parametrize("kind", [BPE, UNIGRAM])
def test_symbols_of_the_user_are_never_cut(kind: int, tmp_path: Path) -> None:
    symbols: list[Piece] = [("ow", 0.0, USER_DEFINED), ("▁▁", 0.0, USER_DEFINED)]
    tokenizer = read(tmp_path, model([*HEAD, *WORDS, *symbols], kind=kind, normalizer=KEEP_SPACES))
    assert pieces(tokenizer, "low  e ") == ["▁", "l", "ow", "▁▁", "e", "▁"]
    assert tokenizer.decode(tokenizer.encode("low  e")) == "low  e"


def test_the_charsmap_is_read_once_for_all_symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    class Counted(Charsmap):
        def __init__(self, content: bytes) -> None:
            made.append(content)
            super().__init__(content)

    monkeypatch.setattr(normalizers, "Charsmap", Counted)
    symbols: list[Piece] = [(f"<{number}>", 0.0, USER_DEFINED) for number in range(20)]
    read(tmp_path, model([*HEAD, *WORDS, *symbols], normalizer={2: charsmap({"L": "l"})}))
    assert len(made) <= 2  # to normalize, and to check the symbols


def test_pieces_that_span_words_are_read(tmp_path: Path) -> None:
    wide: Piece = ("low▁lo", 1.0, NORMAL)
    tokenizer = read(tmp_path, model([*HEAD, *BYTE_PIECES, *WORDS, wide], normalizer=KEEP_SPACES | {3: 0}))
    assert pieces(tokenizer, "low low") == ["low▁lo", "w"]


@pytest.mark.parametrize("kind", [BPE, UNIGRAM])
@pytest.mark.parametrize(
    "normalizer", [KEEP_SPACES, {3: 0}, {2: charsmap({"L": "l"})}], ids=["keep", "bare", "map"]
)
def test_it_survives_our_files_and_a_checkpoint(kind: int, normalizer: Any, tmp_path: Path) -> None:
    symbols: list[Piece] = [("<sym>", 0.0, USER_DEFINED)]
    tokenizer = read(tmp_path, model([*HEAD, *WORDS, *symbols], kind=kind, normalizer=normalizer))
    text = "Low  low<sym> ö\n"
    save_tokenizer(tokenizer, tmp_path / "ours.json")
    assert load_tokenizer(tmp_path / "ours.json") == tokenizer
    small = cr.models.GPT(cr.models.GPTConfig(1, 1, 4, 8, tokenizer.vocab_size))
    cr.io.save_pretrained(small, tokenizer, tmp_path / "checkpoint")
    _, again = cr.io.load_pretrained(tmp_path / "checkpoint")
    assert again is not None and np.array_equal(again.encode(text), tokenizer.encode(text))
    assert again == tokenizer


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (model([*HEAD, *WORDS], kind=CHAR), "model type Char is not supported"),
        (model([*HEAD, *WORDS], trainer={24: 1}), "treat_whitespace_as_suffix is not supported"),
        (model([*HEAD, *WORDS], normalizer={5: 0}), "escape_whitespaces false is not supported"),
        (model([*HEAD, *WORDS], more=field(5, message({2: b"xxxx"}))), "denormalizer_spec with a charsmap"),
        (model([*HEAD, *WORDS, ("x", 0.0, UNUSED)]), "unused pieces is not supported"),
        (model(HEAD[1:] + WORDS), "0 unknown tokens"),
        (model([*HEAD, *WORDS, ("low", 0.0, NORMAL)]), "token 'low' occurs twice"),
        (model([*HEAD, ("x", float("nan"), NORMAL)]), "finite score"),
        (model([*HEAD, *WORDS], normalizer={2: b"\xff\xff"}), "it is damaged"),
        (
            model([*HEAD, *WORDS, ("L", 0.0, USER_DEFINED)], normalizer={2: charsmap({"L": "l"})}),
            "symbol 'L' is changed",
        ),
        (model([*HEAD, *WORDS, ("x", 0.0, 7)]), "piece 'x' has type 7 .must be from 1 to 6"),
        (model([*HEAD, *WORDS, ("x", 0.0, 0)]), "piece 'x' has type 0 .must be from 1 to 6"),
        (model([]), "0 pieces"),
        (b"not a model at all", "Protocol Buffers|damaged"),
        (b"", "0 pieces"),
    ],
)
def test_what_cannot_be_read_is_named(content: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=problem) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(str(tmp_path)) and "\n" not in str(error.value)


@settings(max_examples=150)
@given(st.data())
def test_damaged_files_never_crash(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([BPE, UNIGRAM]))
    content = bytearray(model([*HEAD, *WORDS], kind=kind, normalizer={2: charsmap({"L": "l", "①": "1"})}))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzzed.model"
    path.write_bytes(content)
    try:
        tokenizer = load_tokenizer(path)
        ids = tokenizer.encode("Low ① low ☃")
    except ChainruleError as error:
        assert "\n" not in str(error)
    else:
        assert ((ids >= 0) & (ids < tokenizer.vocab_size)).all()
