"""SentencePiece's models, id for id as `sentencepiece` itself cuts a text."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import chainrule as cr
from chainrule.data import corpora
from chainrule.io import load_tokenizer
from chainrule.io.tokenizers import to_hugging_face
from chainrule.text import Tokenizer
from tests.peers.hard_strings import HARD, texts

sentencepiece = pytest.importorskip("sentencepiece")

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bytes": {"byte_fallback": True},
    "no prefix": {"add_dummy_prefix": False},
    "spaces, bytes": {"remove_extra_whitespaces": False, "byte_fallback": True},
    "spaces, no prefix": {"remove_extra_whitespaces": False, "add_dummy_prefix": False},
    "symbols": {"user_defined_symbols": ["<s", "camel", "12"]},
    "symbols, spaces, bytes": {
        "user_defined_symbols": ["<s", "don't"],
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
    },
    "across words": {"split_by_whitespace": False},
}
CASES = [
    (kind, rule, options)
    for kind in ("bpe", "unigram")
    for rule in ("identity", "nmt_nfkc", "nmt_nfkc_cf")
    for options in OPTIONS
]


@cache
def content(kind: str, rule: str, options: str) -> bytes:
    text = corpora.load("pydoc").text[:40_000] + " naïve 中文 🙂 1234 don't I'LL été ﬁne ①②Ⅳ" * 5
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(text.splitlines()),
        model_writer=written,
        vocab_size=600,
        model_type=kind,
        normalization_rule_name=rule,
        hard_vocab_limit=False,
        character_coverage=0.999,
        minloglevel=2,
        num_threads=1,
        **OPTIONS[options],
    )
    return written.getvalue()


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    path = tmp_path_factory.mktemp("model") / "x.model"
    path.write_bytes(content(*request.param))
    return load_tokenizer(path), sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())


def compare(both: tuple[Tokenizer, Any], text: str) -> None:
    ours, theirs = both
    ids = theirs.encode(text)
    assert ours.encode(text).tolist() == ids
    if theirs.unk_id() not in ids:  # which they write " ⁇ "
        assert ours.decode(ids) == theirs.decode(ids)


@settings(max_examples=40)
@given(texts.filter(lambda text: "\0" not in text))
def test_generated_texts_give_the_same_ids(both: tuple[Tokenizer, Any], text: str) -> None:
    compare(both, text)


def test_hard_texts_give_the_same_ids_also_after_a_checkpoint(
    both: tuple[Tokenizer, Any], tmp_path: Path
) -> None:
    ours, _ = both
    model = cr.models.GPT(cr.models.GPTConfig(1, 1, 4, 8, ours.vocab_size))
    cr.io.save_pretrained(model, ours, tmp_path / "x")
    again = cr.io.load_pretrained(tmp_path / "x")[1]
    assert again == ours
    for text in HARD:
        if "\0" not in text:
            compare(both, text)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("options", ["plain", "spaces, bytes", "no prefix"])
def test_tokenizers_reads_what_we_write_with_the_same_ids(kind: str, options: str, tmp_path: Path) -> None:
    """With the rule identity: their charsmaps work by grapheme, which is not SentencePiece's way."""
    tokenizers = pytest.importorskip("tokenizers")
    (tmp_path / "x.model").write_bytes(content(kind, "identity", options))
    ours = load_tokenizer(tmp_path / "x.model")
    theirs = tokenizers.Tokenizer.from_str(json.dumps(to_hugging_face(ours)))
    for text in HARD:
        if "<" not in text:  # they find special tokens in any text
            assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text).tolist()
