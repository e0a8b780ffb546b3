"""Normalizers, one by one and in turn; each is described and read again."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from chainrule.errors import FormatError
from chainrule.text.pipeline import normalizers
from tests.text.pipeline.charsmaps import charsmap

CHARSMAP = base64.b64encode(charsmap({"ﬁ": "fi"})).decode()
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "NFC"}, "e\u0301ﬁ", "éﬁ"),
    ({"type": "NFD"}, "éﬁ", "e\u0301ﬁ"),
    ({"type": "NFKC"}, "e\u0301ﬁ", "éfi"),
    ({"type": "NFKD"}, "éﬁ", "e\u0301fi"),
    ({"type": "Lowercase"}, "ΑΣ İX", "ασ i̇x"),
    ({"type": "StripAccents"}, "e\u0301é", "eé"),
    ({"type": "Strip", "strip_left": True, "strip_right": False}, "\u3000\x1c a ", "\x1c a "),
    ({"type": "Strip", "strip_left": True, "strip_right": True}, " a\x1c\n", "a\x1c"),
    ({"type": "Prepend", "prepend": "▁"}, "a", "▁a"),
    ({"type": "Prepend", "prepend": "▁"}, "", ""),
    ({"type": "Replace", "pattern": {"String": "``"}, "content": '"'}, "``a``", '"a"'),
    ({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, "a   b c", "a b c"),
    ({"type": "Precompiled", "precompiled_charsmap": CHARSMAP}, "ﬁn", "fin"),
    (
        {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "Né\tÀ中, x\0",
        "ne a 中 , x",
    ),
    (
        {
            "type": "Sequence",
            "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}],
        },
        "É!",
        "e!",
    ),
]


@pytest.mark.parametrize(("description", "text", "normal"), CASES)
def test_text_changes(description: dict[str, Any], text: str, normal: str) -> None:
    normalizer = normalizers.read(description)
    assert normalizer is not None and normalizer(text) == normal
    assert normalizer.to_dict() == description
    assert normalizers.read(normalizer.to_dict()) == normalizer


def test_null_is_no_normalizer() -> None:
    assert normalizers.read(None) is None


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"type": "Nmt"}, "normalizer Nmt is not supported .must be one of BertNormalizer"),
        ("NFC", "normalizer is a str"),
        ({"type": "Replace", "pattern": {"Regex": 3}, "content": ""}, "pattern is"),
        ({"type": "Replace", "pattern": {"String": "a"}}, "content is 'None'"),
        ({"type": "Strip", "strip_left": 1}, "strip_left is '1'"),
        ({"type": "Precompiled", "precompiled_charsmap": "ä"}, "not base64"),
        ({"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "it is damaged"),
        ({"type": "Sequence"}, "without its normalizers"),
        ({"type": "Sequence", "normalizers": [{"type": "X"}]}, "normalizer X is not supported"),
    ],
)
def test_what_cannot_be_read_is_named(description: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        normalizers.read(description)
