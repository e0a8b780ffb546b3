"""Text from tokens that arrive one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chainrule.text import BPETokenizer, CharTokenizer, TextStream

TOKENIZER = BPETokenizer.train("a text 🙂🙂 of words, 中文 too; naïve café " * 3, 300)
any_text = st.text(st.characters(codec="utf-8"), max_size=40)


@given(any_text)
def test_pieces_are_whole_characters_and_make_up_the_text(text: str) -> None:
    stream = TextStream(TOKENIZER)
    pieces = [stream.push(id) for id in TOKENIZER.encode(text).tolist()]
    assert "".join(pieces) == text
    assert stream.close() == ""


@given(st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=40))
def test_any_ids_give_what_decode_gives(ids: list[int]) -> None:
    stream = TextStream(TOKENIZER)
    assert "".join([*map(stream.push, ids), stream.close()]) == TOKENIZER.decode(ids)


def test_a_character_is_never_split_and_never_late() -> None:
    plain = BPETokenizer.train("", 256)
    stream = TextStream(plain)
    assert [stream.push(id) for id in plain.encode("é中🙂").tolist()] == [
        "",
        "é",
        "",
        "",
        "中",
        "",
        "",
        "",
        "🙂",
    ]
    assert stream.push(int(plain.encode("é")[0])) == ""
    assert stream.close() == "\N{REPLACEMENT CHARACTER}"
    assert stream.push(int(plain.encode("a")[0])) == "a"


def test_other_tokenizers_stream_as_well() -> None:
    tokenizer = CharTokenizer("ab")
    stream = TextStream(tokenizer)
    assert [stream.push(id) for id in (0, 1, 1)] == ["a", "b", "b"]
