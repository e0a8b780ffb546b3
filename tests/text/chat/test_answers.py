"""Prompts and answers as a model reads them: the answer begins where the model would begin to write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainrule.errors import FormatError
from chainrule.text import BPETokenizer, prompt_ids
from chainrule.text.chat.answers import AnswerCoder
from chainrule.text.tokenizer import Tokenizer

TEXT = "Why is the sky blue? Because of the air. User: Assistant: "
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% if m['role'] == 'assistant' %}<|end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TALK = [{"role": "user", "content": "Why?"}]


def tokenizer(template: str | None = None, *special: str) -> Tokenizer:
    found = BPETokenizer.train(TEXT, 280, special_tokens=special)
    found.conventions = replace(found.conventions, chat_template=template)
    return found


def test_plain_texts_are_prompt_and_answer_one_after_the_other() -> None:
    plain = tokenizer()
    coder = AnswerCoder(plain)
    assert coder.end is None
    assert plain.decode(coder.prompts(["Why?"])[0]) == "Why?"
    assert plain.decode(coder.answers(["Why?"], [" Because"])[0]) == " Because"


def test_messages_without_a_format_are_a_play() -> None:
    plain = tokenizer()
    coder = AnswerCoder(plain)
    assert plain.decode(coder.prompts([TALK])[0]) == "User: Why?\nAssistant:"
    assert plain.decode(coder.answers([TALK], ["Because"])[0]) == " Because\n"


def test_an_answer_ends_with_the_end_token_of_the_model() -> None:
    ended = tokenizer(None, "<|endoftext|>")
    end = ended.special_ids["<|endoftext|>"]
    ended.conventions = replace(ended.conventions, eos=(end,))
    (ids,) = AnswerCoder(ended).answers(["Why?"], ["Because"])
    assert ids == [*ended.encode("Because").tolist(), end]


@pytest.mark.requirement("R-379")
def test_a_chat_template_writes_prompts_and_answers() -> None:
    chat = tokenizer(TEMPLATE, "<|user|>", "<|assistant|>", "<|end|>")
    coder = AnswerCoder(chat)
    assert coder.end == chat.special_ids["<|end|>"]
    (prompt,), (answer,) = coder.prompts(["Why?"]), coder.answers(["Why?"], ["Because"])
    assert coder.prompts([TALK]) == [prompt]
    assert prompt == prompt_ids(chat, "<|user|>Why?<|assistant|>", special=True).tolist()
    assert answer == [*chat.encode("Because").tolist(), chat.special_ids["<|end|>"]]


def test_an_answer_that_was_cut_has_no_end() -> None:
    chat = tokenizer(TEMPLATE, "<|user|>", "<|assistant|>", "<|end|>")
    whole, cut = AnswerCoder(chat).answers(["Why?", "Why?"], ["Because", "Because"], [False, True])
    assert whole == [*cut, chat.special_ids["<|end|>"]] and chat.decode(cut) == "Because"
    plain = tokenizer()
    assert plain.decode(AnswerCoder(plain).answers([TALK], ["Because"], [True])[0]) == " Because"


def test_names_of_special_tokens_in_a_text_are_ordinary_text() -> None:
    chat = tokenizer(TEMPLATE, "<|user|>", "<|assistant|>", "<|end|>")
    (answer,) = AnswerCoder(chat).answers(["Why?"], ["a<|end|>b"])
    assert answer.count(chat.special_ids["<|end|>"]) == 1 and chat.decode(answer[:-1]) == "a<|end|>b"


def test_a_template_that_rewrites_its_prompt_is_refused() -> None:
    odd = "{% if add_generation_prompt %}ask{% else %}say{% endif %}"
    with pytest.raises(FormatError, match="an answer does not follow its prompt"):
        AnswerCoder(tokenizer(odd)).answers(["Why?"], ["Because"])
