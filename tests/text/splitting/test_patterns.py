"""Patterns by name, by their expressions, and in other spellings."""

from __future__ import annotations

import pytest

from chainrule.errors import ChainruleError, ConfigError
from chainrule.text.splitting.patterns import GPT2, PATTERNS, SPELLINGS, check_pattern, steps_of
from chainrule.text.splitting.pretokenize import split


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_known_by_its_name_and_by_its_expressions(name: str) -> None:
    assert check_pattern(name) == check_pattern(PATTERNS[name]) == check_pattern(list(PATTERNS[name])) == name
    assert steps_of(name) == PATTERNS[name]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings_are_the_same_pattern(spelling: str) -> None:
    assert check_pattern([spelling]) == check_pattern([SPELLINGS[spelling]])
    assert check_pattern(spelling) == check_pattern([spelling])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("smollm", "It's 123  x\n y", "It|'s| |1|2|3| | x|\n| y"),
        ("qwen2", "It's 123  x\n y", "It|'s| |1|2|3| | x|\n| y"),
        ("qwen2", "I'LL, e\u0301!\n\n", "I|'LL|,| e|\u0301!\n\n"),
        ("qwen35", "I'LL, e\u0301!\n\n", "I|'LL|,| e\u0301|!\n\n"),
        (
            "o200k",
            "CamelCase don't HTTPServer 12345 a/b\n",
            "Camel|Case| don't| HTTPServer| |123|45| a|/b|\n",
        ),
        ("tekken", "don't 123", "don|'t| |1|2|3"),
        ("falcon", "x==y 12345!", "x|==|y| |123|45|!"),
        ("gguf-default", "a, 12345 b", "a|,| |123|45| b"),
        ("deepseek-llm", "Hi, you 中文한 123\n\n", "Hi|,| you| |中文한| |123|\n|\n"),
        ("deepseek-coder", "Hi, you 123\n\n", "Hi|,| you| |1|2|3|\n|\n"),
        ("deepseek-v3", "Hi, you! 12345 日本ab\n\n", "Hi|,| you|!| |123|45| |日本|ab|\n\n"),
        ("bloom", "one, two (3)", "one|,| two| (|3|)"),
        ("viking", "a12", "a|1|2"),
    ],
)
def test_words(name: str, text: str, words: str) -> None:
    assert [word.decode() for word in split(text.encode(), name)] == words.split("|")


def test_no_expression_leaves_the_text_whole() -> None:
    assert split(b"a b", ()) == [b"a b"] and split(b"", ()) == []


@pytest.mark.filterwarnings("ignore:expression")
def test_any_expression_is_a_pattern() -> None:
    assert check_pattern(r"[ab]+|\s") == (r"[ab]+|\s",)
    assert split(b"ab, b", r"[ab]+|\s") == [b"ab", b",", b" ", b"b"]
    assert split(b"ab, b12", (r"[ab]+|\s", r"\p{N}")) == [b"ab", b",", b" ", b"b", b"1", b"2"]


@pytest.mark.parametrize("pattern", ["gpt5", "GPT2", ["", GPT2], [3], {"gpt2": 1}])
def test_what_is_no_pattern_is_named(pattern: object) -> None:
    with pytest.raises(ConfigError, match="pattern: got"):
        check_pattern(pattern)  # type: ignore[arg-type]


def test_an_expression_that_is_none_is_refused() -> None:
    with pytest.raises(ChainruleError, match="must be a regular expression"):
        check_pattern("(a")
