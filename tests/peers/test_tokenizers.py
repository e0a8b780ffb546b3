"""Byte-level BPE, token for token as `tiktoken` and `tokenizers` make it.

Where $CHAINRULE_DATA is set, also with the vocabularies of GPT-2 and GPT-4 in it, over all of its texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import corpora
from chainrule.io import load_tokenizer
from chainrule.io.hf.tokenizers import bpe
from chainrule.text import BPETokenizer
from chainrule.text.splitting.patterns import PATTERNS
from chainrule.text.splitting.pretokenize import split
from chainrule.text.unicode.byte_alphabet import show

tiktoken = pytest.importorskip("tiktoken")
tokenizers = pytest.importorskip("tokenizers")

DATA = os.environ.get("CHAINRULE_DATA", "")
needs_data = pytest.mark.skipif(not DATA, reason="CHAINRULE_DATA is not set")

# As tiktoken 0.14 has them in openai_public.py (possessive where ours need not be).
TIKTOKEN = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "gpt4": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
        r"\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    **{name: PATTERNS[name][0] for name in ("llama3", "qwen2", "qwen35", "tekken")},
}

emoji = st.text(st.sampled_from("👩🏽💻🚀🇩🇪👨👧🙂\u200d\ufe0f\U000e0067"), max_size=8)
control = st.text(st.characters(max_codepoint=0xA0), max_size=8)
wordy = st.text("aSsltvedRm'’ſé中1²٣ \t\n\r\x0b\x1c\x85\u3000!?-_", max_size=12)
whole = st.text(st.characters(codec="utf-8"), max_size=20)
unicode_text = st.lists(st.one_of(emoji, control, wordy, whole), max_size=6).map("".join)
surrogates = st.text(st.characters(codec=None), max_size=20)


def their_tiktoken(ours: BPETokenizer) -> Any:
    return tiktoken.Encoding(
        "peer", pat_str=TIKTOKEN[ours.pattern], mergeable_ranks=ours.ids, special_tokens=ours.special_tokens
    )


def their_tokenizers(ours: BPETokenizer) -> Any:
    return tokenizers.Tokenizer.from_str(json.dumps(bpe.write(ours)))


@pytest.fixture(scope="module", params=TIKTOKEN)
def trio(request: pytest.FixtureRequest) -> tuple[BPETokenizer, Any, Any]:
    text = corpora.load("pydoc").text[:100_000] + "naïve 中文 🙂 \n\n 1234" * 3
    ours = BPETokenizer.train(text, 1500, pattern=request.param, special_tokens=["<|a|>", "<|b|>"])
    return ours, their_tiktoken(ours), their_tokenizers(ours)


def test_letters_numbers_and_spaces_are_the_same_characters() -> None:
    """All planes of Unicode that hold any: each engine's \\p{L}, \\p{N} and \\s against our words."""
    planes = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)]
    text = "".join(map(chr, planes))
    bytes_only = {bytes([byte]): byte for byte in range(256)}
    for expression in (r"\p{L}", r"\p{N}", r"\s"):
        one = tiktoken.Encoding("one", pat_str=expression, mergeable_ranks=bytes_only, special_tokens={})
        theirs = set(bytes(one.encode_ordinary(text)).decode())
        cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "removed")
        others = "".join(word for word, _ in cut.pre_tokenize_str(text))
        assert theirs == set(text) - set(others)
        context = {r"\p{L}": ("a", "a\n"), r"\p{N}": (" 1", "1\n"), r"\s": ("!\n", "\n")}[expression]
        words = set(split("".join(c.join(context) for c in text).encode(), "gpt2"))
        alone = {r"\p{L}": "a{}a", r"\p{N}": " 1{}1", r"\s": "\n{}"}[expression]
        assert {c for c in text if alone.format(c).encode() in words} == theirs


@settings(max_examples=1000)
@given(unicode_text)
def test_generated_strings_give_the_same_tokens(trio: tuple[BPETokenizer, Any, Any], text: str) -> None:
    ours, theirs, hugging_face = trio
    ids = ours.encode(text).tolist()
    assert ids == theirs.encode_ordinary(text)
    assert ours.encode(text, special="all").tolist() == hugging_face.encode(text).ids
    assert ours.decode(ids) == theirs.decode(ids) == hugging_face.decode(ids) == text


@settings(max_examples=300)
@given(surrogates)
def test_lone_surrogates_give_tiktokens_tokens(trio: tuple[BPETokenizer, Any, Any], text: str) -> None:
    ours, theirs, _ = trio
    assert ours.encode(text).tolist() == theirs.encode_ordinary(text)


@settings(max_examples=200)
@given(st.lists(st.integers(0, 1499), max_size=20))
def test_any_ids_decode_alike(trio: tuple[BPETokenizer, Any, Any], ids: list[int]) -> None:
    ours, theirs, _ = trio
    assert ours.decode_bytes(ids) == theirs.decode_bytes(ids)
    assert ours.decode(ids) == theirs.decode(ids)


@given(
    st.lists(st.sampled_from(["<|a|>", "<|b|>", " ", "word", "\n", "<|a", "|>"]), max_size=12).map("".join)
)
def test_special_tokens_are_found_alike(trio: tuple[BPETokenizer, Any, Any], text: str) -> None:
    ours, theirs, hugging_face = trio
    found = ours.encode(text, special="all").tolist()
    assert found == theirs.encode(text, allowed_special="all") == hugging_face.encode(text).ids
    some = ours.encode(text, special=["<|b|>"]).tolist()
    assert some == theirs.encode(text, allowed_special={"<|b|>"}, disallowed_special=())


@pytest.fixture(scope="module", params=sorted(PATTERNS.keys() - TIKTOKEN.keys()))
def pair(request: pytest.FixtureRequest) -> tuple[BPETokenizer, Any]:
    text = corpora.load("pydoc").text[:100_000] + "naïve 中文 🙂 \n\n 1234" * 3
    ours = BPETokenizer.train(text, 1500, pattern=request.param)
    return ours, their_tokenizers(ours)


@settings(max_examples=300)
@given(unicode_text)
def test_patterns_of_several_expressions_give_the_same_tokens(
    pair: tuple[BPETokenizer, Any], text: str
) -> None:
    ours, hugging_face = pair
    assert ours.encode(text).tolist() == hugging_face.encode(text).ids


@pytest.mark.filterwarnings("ignore:expression")
@settings(max_examples=100)
@given(unicode_text)
def test_expressions_that_we_do_not_know_give_the_same_tokens(text: str) -> None:
    for expression in (
        r"\p{Han}|[a-z]+|\d",
        r"\w+|[^\w\s]",
        r"(?i:s)\b|.\p{M}*",
        r"[^(\s|[.,!])]+",
        r"[\p{L}&&[^s]]+",
    ):
        ours = BPETokenizer.train("low lower 123", 260, pattern=expression)
        assert ours.encode(text).tolist() == their_tokenizers(ours).encode(text).ids


@pytest.mark.parametrize("pattern", ["gpt2", "gpt4", "llama3", "o200k", "smollm", "deepseek-coder"])
def test_training_gives_the_same_vocabulary(pattern: str) -> None:
    """Also where pairs are equally frequent: both prefer the smaller pair of ids, and number bytes alike."""
    texts = [corpora.load("pydoc").text[:300_000], "中文 naïve 🙂\r\n" * 5]
    ours = BPETokenizer.train(texts, 3000, pattern=pattern, special_tokens=["<|end|>"])
    peer = their_tokenizers(ours)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2999, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    fresh = tokenizers.Tokenizer(tokenizers.models.BPE())
    fresh.pre_tokenizer = peer.pre_tokenizer
    fresh.train_from_iterator(texts, trainer)
    model = json.loads(fresh.to_str())["model"]
    assert model["vocab"] == {show(token): id for token, id in ours.ids.items()}
    assert [tuple(pair) for pair in model["merges"]] == [
        (show(ours.tokens[left]), show(ours.tokens[right])) for left, right, _, _ in ours.merges.tolist()
    ]


@pytest.fixture(scope="module", params=["gpt2", "cl100k_base.tiktoken"])
def published(request: pytest.FixtureRequest) -> tuple[BPETokenizer, Any, Any]:
    ours = load_tokenizer(Path(DATA) / "vocab" / request.param)
    assert isinstance(ours, BPETokenizer)
    return ours, their_tiktoken(ours), their_tokenizers(ours)


def pieces_of_all_texts(size: int = 200_000) -> Iterator[str]:
    for path in sorted((Path(DATA) / "text").glob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        yield from (text[i : i + size] for i in range(0, len(text), size))


@needs_data
def test_all_texts_give_the_same_tokens(published: tuple[BPETokenizer, Any, Any]) -> None:
    ours, theirs, hugging_face = published
    for text in pieces_of_all_texts():
        ids = ours.encode(text)
        assert np.array_equal(ids, theirs.encode_ordinary(text))
        assert ours.decode(ids) == text
    for text in pieces_of_all_texts(2_000_000):
        assert np.array_equal(ours.encode(text), hugging_face.encode(text, add_special_tokens=False).ids)


@needs_data
@settings(max_examples=1000)
@given(unicode_text)
def test_generated_strings_with_published_vocabularies(
    published: tuple[BPETokenizer, Any, Any], text: str
) -> None:
    ours, theirs, hugging_face = published
    ids = ours.encode(text).tolist()
    assert ids == theirs.encode_ordinary(text)
    assert ours.encode(text, special="all").tolist() == hugging_face.encode(text).ids
