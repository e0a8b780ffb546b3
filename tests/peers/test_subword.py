"""WordPiece and Unigram next to `tokenizers` and `sentencepiece`.

Where $CHAINRULE_DATA is set, also BERT's vocabulary over all texts in it.
"""

from __future__ import annotations

import json
import os
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from chainrule.data import corpora
from chainrule.io import load_tokenizer
from chainrule.io.tokenizers import to_hugging_face
from chainrule.text import BertRules, UnigramTokenizer, WordPieceTokenizer
from tests.text.strategies import any_unicode, wordy_text

tokenizers = pytest.importorskip("tokenizers")

DATA = os.environ.get("CHAINRULE_DATA", "")
needs_data = pytest.mark.skipif(not DATA, reason="CHAINRULE_DATA is not set")
TEXT = corpora.load("pydoc").text[:50_000] + "Naïve Ünïcödé 你好世界 \N{GRINNING FACE} ΣΑΣ " * 3


def theirs(ours: WordPieceTokenizer | UnigramTokenizer) -> Any:
    """The same tokenizer from its tokenizer.json, without special tokens, which it would look for in texts."""
    return tokenizers.Tokenizer.from_str(json.dumps(to_hugging_face(ours) | {"added_tokens": []}))


WORDPIECE = WordPieceTokenizer.train(TEXT, 500)
CASED = WordPieceTokenizer.train(TEXT, 500, rules=BertRules(lowercase=False, strip_accents=False))
UNIGRAM = UnigramTokenizer.train(TEXT, 900)
UNKNOWN = UnigramTokenizer.train(TEXT, 500, byte_fallback=False, prefix=False)
PEERS = {id(ours): theirs(ours) for ours in (WORDPIECE, CASED, UNIGRAM, UNKNOWN)}


@cache
def newer() -> frozenset[str]:
    """Characters that tokenizers classes otherwise: its tables are of Unicode 8, Python's are newer."""
    normalizer, cut = tokenizers.normalizers.BertNormalizer(), tokenizers.pre_tokenizers.BertPreTokenizer()

    def differ(characters: str) -> bool:
        text = " ".join(f"a{c}b" for c in characters)
        peer = [word for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(text))]
        return BertRules().split(text) != peer

    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    rows = (every[start : start + 256] for start in range(0, len(every), 256))
    return frozenset(c for row in rows if differ(row) for c in row if differ(c))


def test_characters_are_classed_alike_unless_unicode_came_later() -> None:
    """Every character of Unicode in a word: what differs was assigned, or changed its class, after those tables."""
    changed = {"\u166d", "\u1734", "\u1885", "\u1886"}
    assert {c for c in newer() if unicodedata.ucd_3_2_0.category(c) != "Cn"} <= changed and len(
        newer()
    ) < 1500


@pytest.mark.parametrize("ours", [WORDPIECE, CASED], ids=["uncased", "cased"])
@settings(max_examples=500)
@given(text=any_unicode | wordy_text)
def test_wordpiece_token_for_token(ours: WordPieceTokenizer, text: str) -> None:
    text = "".join(c for c in text if c not in newer())
    encoding = PEERS[id(ours)].encode(text)
    assert ours.encode(text).tolist() == encoding.ids
    assert ours.decode(encoding.ids) == PEERS[id(ours)].decode(encoding.ids)


@needs_data
def test_the_vocabulary_of_bert() -> None:
    ours, peer = bert()
    assert ours.vocab_size == 30522
    assert load_tokenizer(Path(DATA) / "vocab" / "bert-base-uncased" / "tokenizer.json") == ours
    for path in sorted((Path(DATA) / "text").glob("*.txt")):
        text = path.read_text(encoding="utf-8")[:1_000_000]
        assert ours.encode(text).tolist() == peer.encode(text).ids, path.name


@needs_data
@settings(max_examples=1000)
@given(any_unicode | wordy_text)
def test_the_vocabulary_of_bert_on_any_text(text: str) -> None:
    text = "".join(c for c in text if c not in newer())
    ours, peer = bert()
    assert ours.encode(text).tolist() == peer.encode(text).ids


@cache
def bert() -> tuple[WordPieceTokenizer, Any]:
    ours = load_tokenizer(Path(DATA) / "vocab" / "bert-base-uncased" / "vocab.txt")
    assert isinstance(ours, WordPieceTokenizer)
    return ours, theirs(ours)


@pytest.mark.parametrize("ours", [UNIGRAM, UNKNOWN], ids=["bytes", "unknown"])
@settings(max_examples=500)
@given(text=any_unicode | wordy_text)
def test_unigram_token_for_token(ours: UnigramTokenizer, text: str) -> None:
    text = text.replace("▁", "")  # a character of the text for us, a space for them
    ids = PEERS[id(ours)].encode(text).ids
    assert ours.encode(text).tolist() == ids
    if ours.bytes:
        assert ours.decode(ids) == PEERS[id(ours)].decode(ids) == text


def test_unigram_learns_about_what_sentencepiece_learns(tmp_path: Path) -> None:
    """Not the same pieces: candidates and line ends differ. But no worse: as many characters to a token."""
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = [line for line in corpora.load("pydoc").text.splitlines() if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(tmp_path / "peer"),
        vocab_size=2000,
        model_type="unigram",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    peer = sentencepiece.SentencePieceProcessor(str(tmp_path / "peer.model"))
    ours = UnigramTokenizer.train(lines, 2000, byte_fallback=False)
    shared = set(ours.vocabulary.tokens) & {peer.id_to_piece(id) for id in range(2000)}
    assert len(shared) > 1000
    count = sum(len(ours.encode(line)) for line in lines)
    assert count < 1.02 * sum(len(peer.encode(line)) for line in lines)
