"""Prompts with examples, and without; the ids of a prompt as its model expects them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.text import (
    BPETokenizer,
    Conventions,
    SentencePieceBPETokenizer,
    Tokenizer,
    Vocabulary,
    WordPieceTokenizer,
    few_shot,
    prompt_ids,
)
from chainrule.text.chat.prompts import shielded

words = st.text("abc ", min_size=1, max_size=5)


@pytest.mark.requirement("R-374")
@given(st.lists(st.tuples(words, words), max_size=5), words)
def test_k_examples_and_an_open_end(examples: list[tuple[str, str]], query: str) -> None:
    prompt = few_shot(query, examples, instruction="Do it.")
    assert prompt.startswith("Do it.\n\n")
    found = re.findall(r"^Input: (.*)\nOutput: (.+)$", prompt, flags=re.MULTILINE)
    assert found == examples
    assert prompt.endswith(f"Input: {query}\nOutput:")
    assert prompt.count("Output:") == len(examples) + 1


@pytest.mark.requirement("R-374")
def test_zero_shot_and_other_shapes() -> None:
    assert few_shot("2 + 2 =", shape="{input} {output}") == "2 + 2 ="
    prompt = few_shot(
        "sea", [("sun", "Sonne"), ("{output}", "{input}")], shape="{input} => {output}", between="\n"
    )
    assert prompt == "sun => Sonne\n{output} => {input}\nsea =>"
    for shape in ("{input}", "{output}: {input}", "{input}{input}{output}", ""):
        with pytest.raises(ConfigError, match=r"must have \{input\} once and end with \{output\}"):
            few_shot("x", shape=shape)


def bpe(**conventions: object) -> BPETokenizer:
    tokenizer = BPETokenizer.train("", 259, special_tokens=["<s>", "<|end|>", "<|end|>!"])
    tokenizer.conventions = Conventions(**conventions)  # type: ignore[arg-type]
    return tokenizer


def pieces() -> SentencePieceBPETokenizer:
    tokens = ["<unk>", "<s>", "</s>", "▁", "a", "b", "▁a"]
    return SentencePieceBPETokenizer(Vocabulary(tokens, tokens[:3]), [(3, 4, 0)], start="<s>")


def test_special_tokens_are_read_only_when_asked_for() -> None:
    tokenizer = bpe()
    text = "a<|end|>b<|end|>!"
    a, b = tokenizer.encode("ab").tolist()
    assert prompt_ids(tokenizer, text).tolist() == tokenizer.encode(text).tolist()
    assert prompt_ids(tokenizer, text, special=True).tolist() == [a, 257, b, 258]  # the longest name counts
    assert prompt_ids(tokenizer, "", special=True).tolist() == []


@pytest.mark.parametrize("tokenizer", [bpe(), pieces()], ids=["bpe", "pieces"])
def test_a_shielded_text_is_ordinary_text(tokenizer: Tokenizer) -> None:
    text = "a<s>b</s>a\ufdd0b"
    want = tokenizer.encode(text.replace("\ufdd0", "")).tolist()
    assert prompt_ids(tokenizer, shielded(tokenizer, text), special=True).tolist() == want


@pytest.mark.parametrize("names", [["§"], ["<s>", ">", "s>", "<"], ["ab", "b§", "§"]])
def test_short_names_and_those_inside_others_are_shielded(names: list[str]) -> None:
    tokenizer = BPETokenizer.train("", 256 + len(names), special_tokens=names)
    text = "a§b<s>ab§§"
    want = tokenizer.encode(text).tolist()
    assert prompt_ids(tokenizer, shielded(tokenizer, text), special=True).tolist() == want
    conversation = prompt_ids(tokenizer, names[0] + shielded(tokenizer, text) + names[0], special=True)
    assert conversation.tolist() == [256, *want, 256]


def test_bos_stands_first_once_where_the_model_expects_it() -> None:
    for tokenizer in (bpe(bos=256, add_bos=True), pieces()):
        bos = tokenizer.conventions.bos
        inside = tokenizer.encode("a")[-1]
        assert prompt_ids(tokenizer, "a").tolist() == [bos, inside]
        assert prompt_ids(tokenizer, "<s>a", special=True).tolist() == [bos, inside]
        assert prompt_ids(tokenizer, "").tolist() == [bos]
    assert prompt_ids(bpe(bos=256), "a").tolist() == bpe().encode("a").tolist()


def test_a_tokenizer_without_special_tokens_reads_text() -> None:
    tokenizer = WordPieceTokenizer(Vocabulary(["[UNK]", "low"], ["[UNK]"]))
    assert prompt_ids(tokenizer, "low [UNK] low", special=True).tolist() == [1, 0, 1]
