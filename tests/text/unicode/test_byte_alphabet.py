"""GPT-2's byte alphabet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chainrule.text.unicode.byte_alphabet import hide, show


@given(st.binary())
def test_the_byte_alphabet_is_visible_and_goes_back(data: bytes) -> None:
    text = show(data)
    assert len(text) == len(data) and text.isprintable() and " " not in text
    assert hide(text) == data
