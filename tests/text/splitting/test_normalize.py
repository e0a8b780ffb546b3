"""BERT's rules from text to words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from chainrule.text import BertRules, Vocabulary, WordPieceTokenizer
from tests.text.strategies import a_text


@pytest.mark.parametrize("rules", [BertRules(), BertRules(False, False, False, False)], ids=["all", "none"])
def test_every_character_becomes_the_same_words(rules: BertRules) -> None:
    text = " ".join(f"a{chr(code)}b" for code in [*range(0x5000), *range(0xAB00, 0x20000, 3)])
    words = rules.split(text)
    tokenizer = WordPieceTokenizer(Vocabulary(dict.fromkeys(["[UNK]", *words]), ["[UNK]"]), rules=rules)
    assert tokenizer.encode(text).tolist() == [tokenizer.vocabulary.ids[word] for word in words]


def test_the_rules_of_bert() -> None:
    assert BertRules().split(" Ünïcödé\tWÖRDS\x00\u200b,e\u0301tc.") == ["unicode", "words", ",", "etc", "."]
    cased = BertRules(lowercase=False, strip_accents=False)
    assert cased.split("Été") == ["Été"]
    assert BertRules().split("a你好b $1.50 \u3000x") == ["a", "你", "好", "b", "$", "1", ".", "50", "x"]
    assert BertRules().split("ΣΑΣ") == ["σασ"]  # letter by letter: no final form
    assert BertRules(handle_chinese_chars=False).split("你好") == ["你好"]
    assert BertRules(clean_text=False).split("a\x1cb\nc") == ["a\x1cb", "c"]


@settings(max_examples=100)
@given(a_text)
def test_words_hold_no_spaces_and_no_controls(text: str) -> None:
    words = BertRules().split(text)
    assert all(word and not any(c.isspace() for c in word) for word in words)
    assert BertRules().split(" ".join(words)) == words
