"""Pre-tokenizers, one by one and in turn; each is described and read again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import FormatError
from chainrule.text.pipeline import pretokenizers
from chainrule.text.pipeline.pretokenizers import BEHAVIORS

DIGITS = {"type": "Digits", "individual_digits": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
META = {"type": "Metaspace", "replacement": "▁", "split": True}


def at(behavior: str, *, invert: bool = False, **pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


CASES: list[tuple[dict[str, Any], str, str]] = [
    (DIGITS, "ab12 ³x", "ab|1|2| |³|x"),
    ({"type": "Digits", "individual_digits": False}, "ab12 ³x", "ab|12| |³|x"),
    ({"type": "Whitespace"}, "a_b, c!! é\u0301 Ⓐ\n", "a_b|,|c|!!|é\u0301|Ⓐ"),
    ({"type": "WhitespaceSplit"}, " a,b\u3000c\x1cd ", "a,b|c\x1cd"),
    ({"type": "Punctuation", "behavior": "Isolated"}, "Hi!! you", "Hi|!|!| you"),
    ({"type": "Punctuation", "behavior": "Contiguous"}, "Hi!! you", "Hi|!!| you"),
    ({"type": "Punctuation", "behavior": "MergedWithPrevious"}, "Hi!! you", "Hi!|!| you"),
    ({"type": "BertPreTokenizer"}, "Hi!! you", "Hi|!|!|you"),
    ({"type": "CharDelimiterSplit", "delimiter": "-"}, "a--b", "a|b"),
    (at("Isolated", String="-"), "a--b", "a|-|-|b"),
    (at("Removed", String="-"), "a--b", "a|b"),
    (at("Removed", invert=True, String="-"), "a--b", "-|-"),
    (at("Contiguous", String="-"), "a--b", "a|--|b"),
    (at("MergedWithNext", String="-"), "a--b", "a|-|-b"),
    (at("MergedWithPrevious", Regex=r"\s"), "a  b", "a | |b"),
    (META | {"prepend_scheme": "always"}, "a b", "▁a|▁b"),
    (META | {"prepend_scheme": "never", "split": False}, "a b", "a▁b"),
    (BYTES, "It's é", "It|'s| é"),
    (BYTES | {"add_prefix_space": True, "use_regex": False}, "a b", " a b"),
    ({"type": "Sequence", "pretokenizers": [DIGITS, BYTES]}, "a  12", "a|  |1|2"),
    (
        {"type": "Sequence", "pretokenizers": [BYTES, {"type": "Digits", "individual_digits": False}]},
        "x\xb2 1",
        "x|Â|²|Ġ|1",
    ),
]


@pytest.mark.parametrize(("description", "text", "words"), CASES)
def test_words(description: dict[str, Any], text: str, words: str) -> None:
    splitter = pretokenizers.read(description)
    assert splitter is not None and splitter.split(text, True) == words.split("|")
    assert splitter.to_dict() == description
    assert pretokenizers.read(splitter.to_dict()) == splitter


def test_only_the_first_piece_gets_the_space_of_the_text() -> None:
    first = pretokenizers.read(META | {"prepend_scheme": "first"})
    assert first is not None
    assert [first.split("a", True), first.split("a", False), first.split(" a", True)] == [
        ["▁a"],
        ["a"],
        ["▁a"],
    ]
    steps = pretokenizers.read(
        {"type": "Sequence", "pretokenizers": [DIGITS, META | {"prepend_scheme": "first"}]}
    )
    assert steps is not None and steps.split("1a", True) == ["▁1", "a"]


def test_older_files_say_add_prefix_space() -> None:
    old = pretokenizers.read({"type": "Metaspace", "replacement": "▁", "add_prefix_space": False})
    assert old == pretokenizers.Metaspace(prepend_scheme="never")


def test_bytes_are_spelled_last_so_that_words_are_remembered_before() -> None:
    steps = pretokenizers.read({"type": "Sequence", "pretokenizers": [DIGITS, BYTES]})
    assert steps is not None and [steps.spell(word) for word in steps.split(" é", True)] == ["ĠÃ©"]
    assert pretokenizers.Digits().spell("é") == "é" and pretokenizers.Sequence().spell("é") == "é"


@given(st.text("ab-", max_size=12), st.sampled_from(BEHAVIORS), st.booleans())
def test_no_behavior_but_removing_loses_text(text: str, behavior: str, invert: bool) -> None:
    words = pretokenizers.Split.from_dict(at(behavior, invert=invert, String="-")).split(text, True)
    kept = [c for c in text if behavior != "Removed" or (c == "-") == invert]
    assert "".join(words) == "".join(kept) and all(words)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"type": "UnicodeScripts"}, "pre_tokenizer UnicodeScripts is not supported"),
        (at("Kept", String="a"), "behavior 'Kept' is not supported"),
        ({"type": "Punctuation", "behavior": "Kept"}, "behavior 'Kept' is not supported"),
        (META | {"prepend_scheme": "last"}, "must be one character, and always, first or never"),
        (META | {"replacement": "__"}, "must be one character"),
        ({"type": "Split", "pattern": "a"}, "pattern is a"),
        ({"type": "Split", "pattern": {"Regex": "(a"}}, "must be a regular expression"),
        ({"type": "Sequence", "pretokenizers": 3}, "without its pretokenizers"),
        ({"type": []}, "pre_tokenizer .. is not supported"),
    ],
)
def test_what_cannot_be_read_is_named(description: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        pretokenizers.read(description)
