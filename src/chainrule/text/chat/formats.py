"""Conversations: messages with roles, the formats that write them as text, and their ids.

    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}]

A model that was tuned for conversations has a template of its own (`template`); `FORMATS` are plain ones to choose
where it has none, or one that cannot be used. Both write a conversation with `render`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chainrule.errors import DataError, Setting
from chainrule.text.chat.prompts import names_in, prompt_ids, shielded
from chainrule.text.tokenizer import Tokenizer
from chainrule.types import Ids

Message = Mapping[str, str]
ROLES = ("system", "user", "assistant")
CONTENT = "{content}"


class Renderer(Protocol):
    """Writes a conversation as text."""

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """The conversation as text; with `add_generation_prompt` it ends where the answer begins."""

    def render_all(
        self, conversations: Sequence[Sequence[Message]], *, add_generation_prompt: bool = False
    ) -> list[str]:
        """Many conversations."""


@dataclass(frozen=True)
class ChatFormat:
    """A conversation as turns one after the other: the shape of a turn of each role, with {content} in it.

    >>> print(FORMATS["zephyr"].render([{"role": "user", "content": "Hello!"}]), end="")
    <|user|>
    Hello!</s>
    <|assistant|>
    """

    user: str
    assistant: str
    answer: str
    """What stands before an answer that is still to be written."""
    system: str
    system_inside: bool = False
    """The system's text is part of the user's first turn."""
    strip: bool = True
    """White space around contents is left out."""

    @property
    def lead(self) -> str:
        """What stands before an answer and is written by the model, such as a space; it is no part of the content."""
        return self.assistant.removeprefix(self.answer).partition(CONTENT)[0]

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        shapes = {"user": self.user, "assistant": self.assistant, "system": self.system}
        parts, waiting = [], ""
        for message in checked(messages):
            content = message["content"].strip() if self.strip else message["content"]
            if message["role"] == "user":
                content, waiting = waiting + content, ""
            turn = shapes[message["role"]].replace(CONTENT, content)
            if message["role"] == "system" and self.system_inside:
                waiting = turn
            else:
                parts.append(turn)
        return "".join(parts) + (self.answer if add_generation_prompt else "")

    def render_all(
        self, conversations: Sequence[Sequence[Message]], *, add_generation_prompt: bool = False
    ) -> list[str]:
        return [self.render(each, add_generation_prompt=add_generation_prompt) for each in conversations]


def plain(user: str, assistant: str) -> ChatFormat:
    """A play with two speakers: any model of text can answer, in the way of its texts."""
    return ChatFormat(
        system="{content}\n",
        user=f"{user}: {{content}}\n",
        assistant=f"{assistant}:{{content}}\n",
        answer=f"{assistant}:",
        strip=False,
    )


def marked(before: str, after: str) -> ChatFormat:
    """Every turn between two marks, the first of which names the {role}."""
    system, user, assistant = (f"{before.replace('{role}', role)}{CONTENT}{after}" for role in ROLES)
    answer = before.replace("{role}", "assistant")
    return ChatFormat(user=user, assistant=assistant, answer=answer, system=system)


FORMATS = {
    "plain": plain("User", "Assistant"),
    "chatml": marked("<|im_start|>{role}\n", "<|im_end|>\n"),
    "llama2": ChatFormat(
        system="<<SYS>>\n{content}\n<</SYS>>\n\n",
        system_inside=True,
        user="<s>[INST] {content} [/INST]",
        assistant=" {content} </s>",
        answer="",
    ),
    "llama3": marked("<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>"),
    "zephyr": marked("<|{role}|>\n", "</s>\n"),
    "gemma": ChatFormat(
        system="{content}\n\n",
        system_inside=True,
        user="<start_of_turn>user\n{content}<end_of_turn>\n",
        assistant="<start_of_turn>model\n{content}<end_of_turn>\n",
        answer="<start_of_turn>model\n",
    ),
    "roles": ChatFormat(  # that of models which are tuned here: `roles`
        system="<|system|> {content} ",
        user="<|user|> {content} ",
        assistant="<|assistant|> {content}<|end|>",
        answer="<|assistant|>",
    ),
    "lines": ChatFormat(  # for models that know few characters
        system="{content}\n", user="{content}\n", assistant="{content}\n", answer="", strip=False
    ),
}


def checked(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages; an error names the first one without a known role or a text."""
    for number, message in enumerate(messages):
        if message.get("role") not in ROLES or not isinstance(message.get("content"), str):
            rule = f"must have a role of {', '.join(ROLES)}, and a content"
            raise DataError(f"message {number}: {str(dict(message))[:80]} ({rule})")
    return messages


def chat_ids(
    tokenizer: Tokenizer,
    format: Renderer,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    special: bool = False,
) -> Ids:
    """ids (n,) of a conversation. Names of special tokens in a content are ordinary text unless `special` is true."""
    if not special:
        messages = [{**m, "content": shielded(tokenizer, m["content"])} for m in checked(messages)]
    text = written(format, messages, add_generation_prompt=add_generation_prompt)
    return prompt_ids(tokenizer, text, special=True)


class NothingWrittenError(DataError):
    """A chat template that gives no text for a conversation."""


def written(format: Renderer, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
    """The conversation as text. A model has nothing to continue where a template gives none: that is refused."""
    text = format.render(messages, add_generation_prompt=add_generation_prompt)
    if not text and messages:
        fix = (" (choose a format instead: ", Setting("format"), f" {', '.join(FORMATS)})")
        raise NothingWrittenError("chat template: gives no text for this conversation", *fix)
    return text


def unreadable(tokenizer: Tokenizer, format: Renderer) -> list[str]:
    """Characters that a format writes around contents and the tokenizer does not know.

    >>> from chainrule.text import CharTokenizer
    >>> unreadable(CharTokenizer.train("Assistant: yes\\n"), FORMATS["plain"])
    ['U', 'r']
    """
    empty: list[Message] = [{"role": role, "content": ""} for role in ("user", "assistant", "user")]
    written = names_in(tokenizer).sub("", format.render(empty))
    return [character for character in dict.fromkeys(written) if not _knows(tokenizer, character)]


def _knows(tokenizer: Tokenizer, character: str) -> bool:
    try:
        tokenizer.encode(character)
    except DataError:
        return False
    return True


def answer_end(tokenizer: Tokenizer, format: Renderer) -> int | str | None:
    """What ends an answer in this format: the special token that follows it, or else the text.

    It is found by writing a conversation and looking at what stands after the answer.
    """
    said = ("question", "answer", "question")
    contents = [f"{word} {number}" for number, word in enumerate(said)]
    roles = ("user", "assistant", "user")
    messages = [{"role": role, "content": text} for role, text in zip(roles, contents, strict=True)]
    after = format.render(messages, add_generation_prompt=False).partition(contents[1])[2]
    between = after.partition(contents[2])[0]
    if token := names_in(tokenizer).search(between):
        return tokenizer.special_ids[token[0]]
    text = re.match(r"\s*\S[^\n]*", between)
    return text[0].rstrip() if text else between.strip(" ") or None
