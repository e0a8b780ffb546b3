"""SentencePiece's tables of replacements."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ChainruleError, FormatError
from chainrule.text.pipeline.charsmap import Charsmap
from tests.text.pipeline.charsmaps import charsmap

TABLE = {"\t": " ", "ﬁ": "fi", "e\u0301": "é", "e": "E", "①": "1", "\u200b": "", "か\u3099": "が", "が": "ga"}


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("", ""),
        ("abc", "abc"),
        ("ﬁne\t①", "fin" + "E 1"),
        ("e\u0301e", "éE"),
        ("xe\u0301\u200b\u200by", "xéy"),
        ("か\u3099か", "がか"),
        ("\ud800a", "\ufffda"),
    ],
)
def test_the_longest_string_is_replaced(text: str, replaced: str) -> None:
    assert Charsmap(charsmap(TABLE)).replace(text) == replaced


@given(st.text("abeé\u0301ﬁ\t①\u200bかが\u3099x ", max_size=20))
def test_it_replaces_as_a_plain_loop_does(text: str) -> None:
    """With ASCII that is replaced, and without, where runs of ASCII are copied."""
    for table in (TABLE, {key: value for key, value in TABLE.items() if key != "e"}):
        parts, place = [], 0
        while place < len(text):
            size = next((n for n in (2, 1) if text[place : place + n] in table), 0)
            parts.append(table[text[place : place + size]] if size else text[place])
            place += size or 1
        assert Charsmap(charsmap(table)).replace(text) == "".join(parts)


def test_ascii_strings_of_several_characters_are_replaced() -> None:
    assert Charsmap(charsmap({"ab": "X", "abcd": "Y"})).replace("abc abcd ab") == "Xc Y X"


def test_no_content_replaces_nothing() -> None:
    assert Charsmap(b"").replace("ﬁ\t") == "ﬁ\t"


def test_the_trie_is_not_copied() -> None:
    content = (1 << 20).to_bytes(4, "little") + bytes(1 << 20)
    tracemalloc.start()
    table = Charsmap(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.replace("a") == "a" and most < 1 << 19


@pytest.mark.parametrize("content", [b"x", b"\1\0\0\0", b"\xff\0\0\0" + bytes(8), b"\3\0\0\0" + bytes(8)])
def test_a_damaged_head_is_refused(content: bytes) -> None:
    with pytest.raises(FormatError, match="it is damaged"):
        Charsmap(content)


@given(st.binary(min_size=4, max_size=200), st.text(max_size=20))
def test_any_trie_gives_a_text_or_one_line(content: bytes, text: str) -> None:
    size = len(content) // 4 * 4
    try:
        Charsmap(size.to_bytes(4, "little") + content).replace(text)
    except ChainruleError as error:
        assert "\n" not in str(error)
