"""Decoders, one by one and in turn; each is described and read again."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.errors import FormatError
from chainrule.text.pipeline import decoders

RESTORE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA = {"type": "Sequence", "decoders": [RESTORE, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP]}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
META = {"type": "Metaspace", "replacement": "▁", "split": True}
CASES: list[tuple[dict[str, Any], list[str], str]] = [
    (BYTES, ["ĠcafÃ", "©", "<|日|>"], " café<|日|>"),
    (BYTES, ["Ã"], "\ufffd"),
    (
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        ["un", "##able", "to", "do", ".", "n't"],
        "unable to do.n't",
    ),
    ({"type": "WordPiece", "prefix": "##", "cleanup": False}, ["##a", "b", "."], "##a b ."),
    ({"type": "BPEDecoder", "suffix": "</w>"}, ["lo", "w</w>", "er</w>"], "low er"),
    (META | {"prepend_scheme": "always"}, ["▁▁a", "▁b"], "a b"),
    (META | {"prepend_scheme": "never"}, ["▁a", "▁b"], " a b"),
    (LLAMA, ["▁▁a", "<0xE4>", "<0xB8>", "<0xAD>", "▁b"], " a中 b"),
    (LLAMA, ["<0xE4>", "<0xB8>", "x"], "\ufffd\ufffdx"),
    ({"type": "Strip", "content": "_", "start": 1, "stop": 2}, ["__a___", "_"], "_a_"),
]


@pytest.mark.parametrize(("description", "tokens", "text"), CASES)
def test_text(description: dict[str, Any], tokens: list[str], text: str) -> None:
    decoder = decoders.read(description)
    assert decoder is not None and "".join(decoder(tokens)) == text
    assert decoder.to_dict() == description
    assert decoders.read(decoder.to_dict()) == decoder
    assert "".join(decoder([])) == ""


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"type": "CTC"}, "decoder CTC is not supported"),
        ({"type": "Strip", "content": "ab", "start": 1, "stop": 0}, "must be one character"),
        ({"type": "Strip", "content": " ", "start": -1, "stop": 0}, "at least 0"),
        ({"type": "Sequence", "decoders": None}, "without its decoders"),
    ],
)
def test_what_cannot_be_read_is_named(description: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decoders.read(description)
