"""Prompts with their answers as ids, in the way of a model: its chat template if it has one, else plain text.

A prompt is a text or the messages of a conversation. The answer begins where the model would begin to write, and ends
with the token that ends an answer, if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainrule.errors import FormatError
from chainrule.text.chat.formats import FORMATS, Message, Renderer, answer_end
from chainrule.text.chat.prompts import marked_ids, prompt_ids, shielded
from chainrule.text.chat.roles import own_format
from chainrule.text.tokenizer import Tokenizer

Prompt = str | Sequence[Mapping[str, str]]
PLAIN = FORMATS["plain"]


class AnswerCoder:
    """Prompts and answers of one model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        chats = tokenizer.conventions.chat_template is not None
        self.format: Renderer | None = own_format(tokenizer) if chats else None
        self.end = self._end()

    def _end(self) -> int | None:
        """The token that ends an answer."""
        eos = self.tokenizer.conventions.eos
        found = None if self.format is None else answer_end(self.tokenizer, self.format)
        return found if isinstance(found, int) else eos[0] if eos else None

    def prompts(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """The ids of prompts, each up to where its answer begins."""
        return [self._prompt_ids(text) for text in self._prompt_texts(prompts)]

    def answers(
        self, prompts: Sequence[Prompt], answers: Sequence[str], cut: Sequence[bool] | None = None
    ) -> list[list[int]]:
        """The ids of an answer to each prompt; one that was cut has no end."""
        cuts = [False] * len(answers) if cut is None else cut
        if self.format is None:
            plain = zip(prompts, answers, cuts, strict=True)
            return [self._ended(self._plain(p, a, cut=over), cut=over) for p, a, over in plain]
        before = self._prompt_texts(prompts)
        talks = [
            [*self._messages(p), self._message("assistant", a)] for p, a in zip(prompts, answers, strict=True)
        ]
        whole = self.format.render_all(talks)
        found = []
        for begin, text, over in zip(before, whole, cuts, strict=True):
            if not text.startswith(begin):
                raise FormatError(
                    "chat template: an answer does not follow its prompt (must write a conversation as its prompt "
                    "goes on)"
                )
            ids = marked_ids(self.tokenizer, text[len(begin) :], inside=True).tolist()
            found.append(self._ended(ids, cut=over))
        return found

    def _prompt_texts(self, prompts: Sequence[Prompt]) -> list[str]:
        if self.format is not None:
            return self.format.render_all(list(map(self._messages, prompts)), add_generation_prompt=True)
        return [p if isinstance(p, str) else PLAIN.render(p) for p in prompts]

    def _prompt_ids(self, text: str) -> list[int]:
        return prompt_ids(self.tokenizer, text, special=self.format is not None).tolist()

    def _messages(self, prompt: Prompt) -> list[Message]:
        """Names of special tokens in a content are ordinary text."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return [self._message(m["role"], m["content"]) for m in messages]

    def _message(self, role: str, content: str) -> Message:
        return {"role": role, "content": shielded(self.tokenizer, content)}

    def _plain(self, prompt: Prompt, answer: str, *, cut: bool) -> list[int]:
        """An answer without a format; in a play a line ends it."""
        text = answer if isinstance(prompt, str) else f" {answer}" if cut else f" {answer}\n"
        return self.tokenizer.encode_inside(text).tolist()

    def _ended(self, ids: list[int], *, cut: bool) -> list[int]:
        """Up to its first end token, which is put there if it is missing; without it if the answer was cut."""
        if self.end is None:
            return ids
        before = ids[: ids.index(self.end)] if self.end in ids else ids
        return before if cut else [*before, self.end]
