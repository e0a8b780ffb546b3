"""Conversations in plain formats: their text, their ids, and where an answer ends."""

from __future__ import annotations

import typing

import pytest

from chainrule.cli.commands.chat import Format
from chainrule.errors import DataError
from chainrule.text import FORMATS, BPETokenizer, CharTokenizer, ChatFormat, chat_ids
from chainrule.text.chat.formats import answer_end, plain, unreadable

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
]


def test_a_play_with_two_speakers() -> None:
    talk = [*TALK[:2], {"role": "assistant", "content": " Hello"}, TALK[3]]
    text = "Be brief.\nROMEO: Hi\nJULIET: Hello\nROMEO: Bye\nJULIET:"
    assert plain("ROMEO", "JULIET").render(talk) == text
    assert plain("ROMEO", "JULIET").render(talk, add_generation_prompt=False) == text.removesuffix("JULIET:")


def test_turns_with_marks_and_a_system_inside_the_first_turn() -> None:
    assert FORMATS["chatml"].render(TALK[:2]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    gemma = FORMATS["gemma"].render(TALK)
    assert gemma.startswith("<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello")
    assert gemma.count("Be brief.") == 1


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_stands_where_it_was_asked_for(name: str) -> None:
    """What the model writes after the prompt and what a later prompt holds is one text: its cache can be kept."""
    format = FORMATS[name]
    content = {"plain": " Hello", "llama2": "Hello"}.get(name, "Hello")
    said = [*TALK[:2], {"role": "assistant", "content": content}]
    between = " " if name in ("llama2", "roles") else ""  # which the model writes itself
    assert format.render(said, add_generation_prompt=False).startswith(
        format.render(TALK[:2]) + between + content
    )


def test_the_command_line_knows_the_formats() -> None:
    assert typing.get_args(Format) == tuple(FORMATS)


def test_ids_of_a_conversation() -> None:
    tokenizer = BPETokenizer.train("", 258, special_tokens=["<|im_start|>", "<|im_end|>"])
    talk = [{"role": "user", "content": "a<|im_end|>"}]
    ids = chat_ids(tokenizer, FORMATS["chatml"], talk)
    assert tokenizer.decode(ids) == FORMATS["chatml"].render(talk)
    assert ids.tolist().count(257) == 1  # the one of the format: what a person writes ends no turn
    assert chat_ids(tokenizer, FORMATS["chatml"], talk, special=True).tolist().count(257) == 2
    closed = chat_ids(tokenizer, FORMATS["chatml"], talk, add_generation_prompt=False)
    assert ids[: len(closed)].tolist() == closed.tolist()


def test_where_an_answer_ends() -> None:
    tokenizer = BPETokenizer.train("", 258, special_tokens=["<|im_end|>", "</s>"])
    assert answer_end(tokenizer, FORMATS["chatml"]) == 256
    assert answer_end(tokenizer, FORMATS["zephyr"]) == 257 == answer_end(tokenizer, FORMATS["llama2"])
    assert answer_end(CharTokenizer("ab"), FORMATS["chatml"]) == "<|im_end|>"  # no such token: as text
    assert answer_end(tokenizer, plain("ROMEO", "JULIET")) == "\nROMEO:"
    assert answer_end(tokenizer, FORMATS["lines"]) == "\n"
    joined = ChatFormat(user="{content}", assistant="{content}", answer="", system="")
    assert answer_end(tokenizer, joined) is None


def test_characters_that_a_model_does_not_know() -> None:
    names = CharTokenizer.train("emma\n", special_tokens=["<|user|>", "<|assistant|>"])
    assert unreadable(names, plain("a", "e")) == [":", " "] and unreadable(names, FORMATS["lines"]) == []
    assert unreadable(names, FORMATS["roles"]) == [" ", "<", "|", "n", "d", ">"]  # <|end|> is no token here
    assert unreadable(BPETokenizer.train("", 256), FORMATS["chatml"]) == []


@pytest.mark.parametrize(
    "message",
    [{"role": "tool", "content": "x"}, {"role": "user"}, {"content": "x"}, {"role": "user", "content": None}],
)
def test_a_message_without_role_or_text_is_refused(message: dict[str, str]) -> None:
    for render in (
        FORMATS["chatml"].render,
        lambda talk: chat_ids(CharTokenizer("a"), FORMATS["plain"], talk),
    ):
        with pytest.raises(DataError, match=r"message 1: .* \(must have a role of system, user, assistant"):
            render([TALK[1], message])
