"""Tokenizers in GGUF's settings: patterns by llama.cpp's names, WordPiece, Unigram; what is unknown is named."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.errors import ConfigError, FormatError
from chainrule.io import load_tokenizer, sentencepiece
from chainrule.io.gguf import file
from chainrule.io.gguf.conventions import read_conventions
from chainrule.io.gguf.file import read_settings
from chainrule.io.gguf.tokenizers import MERGED, PATTERNS, PRE, PREFIX, write_tokenizer
from chainrule.io.settings import Settings
from chainrule.io.tokenizers import described_tokenizer, to_hugging_face
from chainrule.text import (
    BPETokenizer,
    PipelineTokenizer,
    SentencePieceBPETokenizer,
    Tokenizer,
    WordPieceTokenizer,
    prompt_ids,
)
from chainrule.text.splitting import patterns as known
from chainrule.text.unigram import BYTES
from tests.text.pipeline.charsmaps import charsmap

TEXT = "She sells 12345 sea shells; they're HTTPServer shells.\n\n  naïve 中文中文 🙂 "
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def read(tmp_path: Path, **settings: Any) -> Tokenizer:
    path = tmp_path / "x.gguf"
    path.unlink(missing_ok=True)
    file.write(path, {PREFIX + name.replace("__", "."): value for name, value in settings.items()}, {})
    return load_tokenizer(path)


def described(tokenizer: Tokenizer) -> dict[str, Any]:
    return {name.removeprefix(PREFIX): value for name, value in write_tokenizer(tokenizer).items()}


def trained(pattern: str) -> BPETokenizer:
    whole = pattern in ("llama3", "tekken")
    found = BPETokenizer.train(TEXT * 3, 330, pattern=pattern, special_tokens=["<|end|>"])
    merges = [(left, right) for left, right, _, _ in found.merges.tolist()]
    return BPETokenizer(
        found.ids, merges, pattern=pattern, special_tokens=found.special_tokens, whole_words=whole
    )


@pytest.mark.parametrize("pattern", known.PATTERNS)
def test_every_pattern_comes_back(pattern: str, tmp_path: Path) -> None:
    assert read(tmp_path, **described(trained(pattern))) == trained(pattern)


@pytest.mark.parametrize("pre", PATTERNS)
def test_every_name_means_a_pattern(pre: str, tmp_path: Path) -> None:
    tokenizer = read(tmp_path, **described(trained("gpt2")) | {"pre": pre})
    assert isinstance(tokenizer, BPETokenizer) and tokenizer.pattern == PATTERNS[pre]
    assert tokenizer.whole_words == (tokenizer.pattern in ("llama3", "tekken") and pre not in MERGED)


def test_without_a_name_the_pattern_is_llama_cpps_default(tmp_path: Path) -> None:
    settings = described(trained("gpt2"))
    del settings["pre"]
    tokenizer = read(tmp_path, **settings)
    assert isinstance(tokenizer, BPETokenizer) and tokenizer.pattern == "gguf-default"


def test_names_are_unique() -> None:
    assert len(PATTERNS) == sum(map(len, PRE.values())) and PRE.keys() == known.PATTERNS.keys()


def test_a_pipeline_of_bytes_is_written_without_its_normal_form(tmp_path: Path) -> None:
    """As llama.cpp's own converter does: for Qwen, whose file asks for NFC and lists tokens that are not special."""
    described_qwen = to_hugging_face(trained("qwen2")) | {"normalizer": {"type": "NFC"}}
    described_qwen["added_tokens"].append({"id": 330, "content": "<tool>", "special": False})
    tokenizer = described_tokenizer(described_qwen)
    assert isinstance(tokenizer, PipelineTokenizer)
    settings = described(tokenizer)
    assert settings["token_type"].tolist()[-2:] == [CONTROL, USER_DEFINED]
    read_again = read(tmp_path, **settings)
    text = f"{TEXT}<tool>{TEXT}<|end|>"
    assert 330 in tokenizer.encode(text)
    assert read_again.encode(text).tolist() == tokenizer.encode(text).tolist()
    assert read_again.decode(read_again.encode(text)) == text
    assert "<|end|>" in read_again.special_ids and "<tool>" not in read_again.special_ids
    assert described(read_again)["token_type"].tolist() == settings["token_type"].tolist()
    lowercase = described_tokenizer(described_qwen | {"normalizer": {"type": "Lowercase"}})
    with pytest.raises(ConfigError, match=r"gguf: cannot hold this pipeline .normalizer 'Lowercase'"):
        write_tokenizer(lowercase)


def test_added_spaces_survive_our_own_file(tmp_path: Path) -> None:
    fast = trained("gpt2")
    description = to_hugging_face(fast)
    description["added_tokens"].append({"id": fast.vocab_size, "content": "    ", "special": False})
    tokenizer = described_tokenizer(description)
    again, ids = read(tmp_path, **described(tokenizer)), tokenizer.encode("a    b").tolist()
    assert fast.vocab_size in ids and again.encode("a    b").tolist() == ids
    assert again.special_ids == fast.special_ids
    marked = prompt_ids(again, "a    b<|end|>", special=True)
    assert marked.tolist() == [*ids, fast.special_ids["<|end|>"]]


def test_what_ends_a_text_is_special_whatever_the_file_calls_it(tmp_path: Path) -> None:
    settings = described(
        BPETokenizer.train(TEXT, 300, pattern="qwen2", special_tokens=["<tool>", "<|im_end|>"])
    )
    settings["token_type"][settings["token_type"] == CONTROL] = USER_DEFINED
    tokenizer = read(tmp_path, **settings)
    end = tokenizer.special_ids["<|im_end|>"]
    assert end not in tokenizer.encode("a<|im_end|>") and "<tool>" in [
        tokenizer.piece(id) for id in tokenizer.encode("a<tool>")
    ]
    tokenizer.conventions = read_conventions(Settings(read_settings(tmp_path / "x.gguf")), tokenizer)
    assert tokenizer.conventions.eos == (end,)


PIECES = ["<unk>", "<s>", "▁", "l", "o", "w", "lo", "▁lo", "<tool>", "  ", "[PAD0]", *BYTES]
PIECE_TYPES = [UNKNOWN, CONTROL, *[NORMAL] * 6, USER_DEFINED, USER_DEFINED, UNUSED, *[BYTE] * 256]


def pieces(**changes: Any) -> dict[str, Any]:
    scores = np.array([0, 0, -9, -9, -9, -9, -1, -2, *[0] * 259], np.float32)
    types = np.array(PIECE_TYPES, np.int32)
    return {"model": "llama", "tokens": PIECES, "scores": scores, "token_type": types} | changes


@pytest.mark.parametrize(("unknown", "filling"), [(UNKNOWN, UNUSED), (CONTROL, UNUSED), (CONTROL, UNKNOWN)])
def test_tokens_of_the_user_are_found_among_pieces(unknown: int, filling: int, tmp_path: Path) -> None:
    """Whatever a converter calls the unknown token, and those that fill the vocabulary."""
    types = [unknown, *(filling if kind == UNUSED else kind for kind in PIECE_TYPES[1:])]
    tokenizer = read(tmp_path, **pieces(token_type=np.array(types, np.int32)))
    ids = tokenizer.encode("lo<tool>w  lo é")
    assert [tokenizer.piece(id) for id in ids.tolist()] == [
        "▁lo", "<tool>", "w", "▁▁", "lo", "▁", "<0xC3>", "<0xA9>"
    ]  # fmt: skip
    assert tokenizer.decode(ids) == "lo<tool>w  lo é"
    assert list(tokenizer.special_ids) == ["<unk>", "<s>", "[PAD0]"]
    assert read(tmp_path, **described(tokenizer)) == tokenizer


@pytest.mark.parametrize(
    ("bos", "begun", "prompted"),
    [
        ({}, [1], [1]),
        ({"bos_token_id": 1}, [1], [1]),
        ({"bos_token_id": 0}, [0], [0]),
        ({"bos_token_id": 1, "add_bos_token": False}, [], []),
        ({"bos_token_id": 2**32 - 1}, [], []),
        ({"bos_token_id": 3}, [], [3]),
        ({"bos_token_id": 999}, [], []),
    ],
)
def test_pieces_begin_with_bos(
    bos: dict[str, Any], begun: list[int], prompted: list[int], tmp_path: Path
) -> None:
    """A special one in every encoded text, an ordinary one in prompts."""
    plain = np.array([NORMAL if kind == USER_DEFINED else kind for kind in PIECE_TYPES], np.int32)
    tokenizer, symbols = read(tmp_path, **pieces(token_type=plain), **bos), read(tmp_path, **pieces(), **bos)
    assert isinstance(tokenizer, SentencePieceBPETokenizer)
    assert tokenizer.encode("low").tolist() == [*begun, 7, 5]
    for found in (tokenizer, symbols):
        found.conventions = read_conventions(Settings(read_settings(tmp_path / "x.gguf")), found)
        assert prompt_ids(found, "low").tolist() == [*prompted, 7, 5]


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁un", "aff", "able", "▁!", "▁café", "▁ca", "fe"]
BERT_TYPES = np.array([CONTROL, 2, CONTROL, CONTROL, CONTROL, *[1] * 7], np.int32)


def test_wordpiece_has_its_marks_at_the_beginning_of_words(tmp_path: Path) -> None:
    tokenizer = read(tmp_path, model="bert", tokens=BERT, token_type=BERT_TYPES)
    assert isinstance(tokenizer, WordPieceTokenizer)
    assert tokenizer.pieces("Unaffable! Café [CLS]") == [
        "un",
        "##aff",
        "##able",
        "!",
        "ca",
        "##fe",
        *["[UNK]"] * 3,
    ]
    assert list(tokenizer.special_ids) == BERT[:5]
    cased = read(tmp_path, model="bert", tokens=BERT, token_type=BERT_TYPES, normalizer__lowercase=False)
    assert isinstance(cased, WordPieceTokenizer) and cased.pieces("Un café") == ["[UNK]", "café"]


def test_unigram_has_its_charsmap(tmp_path: Path) -> None:
    tokens, types = ["<unk>", "</s>", "▁a", "b", "▁"], np.array([2, 3, 1, 1, 1], np.int32)
    scores = np.array([0, 0, -1, -2, -3], np.float32)
    table = np.frombuffer(charsmap({"B": "b"}), np.uint8)
    settings = {"model": "t5", "tokens": tokens, "token_type": types, "scores": scores}
    path = tmp_path / "x.gguf"
    tokenizer = read(tmp_path, **settings, remove_extra_whitespaces=True)
    assert isinstance(tokenizer, PipelineTokenizer) and tokenizer.pieces(" a  abB") == [
        "▁a",
        "▁a",
        "b",
        "<unk>",
    ]
    # Our writer has no arrays of bytes: they are put into the file by hand.
    content = path.read_bytes()
    entry = f"{PREFIX}precompiled_charsmap".encode()
    field = len(entry).to_bytes(8, "little") + entry + (9).to_bytes(4, "little") + bytes(4)
    field += len(table).to_bytes(8, "little") + table.tobytes()
    count = int.from_bytes(content[16:24], "little") + 1
    path.write_bytes(content[:16] + count.to_bytes(8, "little") + field + content[24:])
    mapped = load_tokenizer(path)
    assert isinstance(mapped, PipelineTokenizer) and mapped.pieces("abB") == ["▁a", "b", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pre": "kimi-k2"}, "tokenizer.ggml.pre kimi-k2 is not supported .must be one of gpt-2"),
        ({"pre": ["gpt-2"]}, r"tokenizer.ggml.pre \['gpt-2'\] is not supported .must be one of gpt-2"),
        (
            {"model": "rwkv"},
            "tokenizer.ggml.model rwkv is not supported .must be one of gpt2, llama, bert, t5",
        ),
        ({"tokens": 3}, "tokens is missing"),
        ({"merges": 3}, "merges is missing"),
    ],
)
def test_what_is_unknown_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        read(tmp_path, **described(trained("gpt2")) | change)


def test_a_pipeline_of_pieces_that_removes_spaces_is_refused() -> None:
    names = [name.replace(" ", "▁") for name in PIECES]
    types = [CONTROL if kind == UNUSED else kind for kind in PIECE_TYPES]
    build = partial(sentencepiece.build, "BPE", names, pieces()["scores"].tolist(), types)
    assert write_tokenizer(build(sentencepiece.Rules(remove_extra_whitespaces=False)))
    with pytest.raises(ConfigError, match="gguf: cannot hold this pipeline"):
        write_tokenizer(build(sentencepiece.Rules()))


@pytest.mark.filterwarnings("ignore:expression")
def test_a_pattern_of_ones_own_has_no_name_there() -> None:
    with pytest.raises(ConfigError, match="gguf: cannot hold the pattern"):
        write_tokenizer(BPETokenizer.train("a b", 256, pattern=r"\w+|\s+"))
