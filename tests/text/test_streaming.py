"""Text from tokens that arrive one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.text import BPETokenizer, CharTokenizer, TextStream, Tokenizer, UnigramTokenizer, WordTokenizer

TEXT = "a text 🙂🙂 of words, 中文 too; naïve café " * 3
TOKENIZER = BPETokenizer.train(TEXT, 300)
UNIGRAM = UnigramTokenizer.train(TEXT, 300)
any_text = st.text(st.characters(codec="utf-8"), max_size=40)


@pytest.mark.parametrize("tokenizer", [TOKENIZER, UNIGRAM])
@given(text=any_text)
def test_pieces_are_whole_characters_and_make_up_the_text(tokenizer: Tokenizer, text: str) -> None:
    stream = TextStream(tokenizer)
    pieces = [stream.push(id) for id in tokenizer.encode(text).tolist()]
    assert "".join(pieces) == text
    assert stream.close() == ""


@pytest.mark.parametrize("tokenizer", [TOKENIZER, UNIGRAM])
@given(ids=st.lists(st.integers(0, 270), max_size=40))
def test_any_ids_give_what_decode_gives(tokenizer: Tokenizer, ids: list[int]) -> None:
    stream = TextStream(tokenizer)
    assert "".join([*map(stream.push, ids), stream.close()]) == tokenizer.decode(ids)


@pytest.mark.parametrize("tokenizer", [UNIGRAM, WordTokenizer.train("a text of words")])
def test_what_follows_a_prompt_keeps_the_space_between(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a text of words").tolist()
    cut = len(tokenizer.encode("a text"))
    stream = TextStream(tokenizer, after=ids[:cut])
    assert "".join(map(stream.push, ids[cut:])) == " of words"


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


def test_special_tokens_are_left_out_unless_asked_for() -> None:
    tokenizer = BPETokenizer.train("", 258, special_tokens=["<|end|>", "<unk>"])
    ids = tokenizer.encode("a<|end|>é<unk>", special="all").tolist()
    cut = [*ids[:2], *ids[2:3], 256, *ids[3:]]  # also inside a character
    assert "".join(map(TextStream(tokenizer).push, cut)) == "aé<unk>"  # which stands for text
    assert "".join(map(TextStream(tokenizer, special=True).push, ids)) == "a<|end|>é<unk>"
