"""Which tokens of a conversation are learned: those of the answers, each with the token that ends its turn.

A conversation is written turn by turn, as it will be when the model is asked: what stands before an answer is given,
the answer is learned. So the text is cut where an answer begins and where its turn ends, and each part is encoded on
its own: the model reads the same tokens in training and in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.text.chat.formats import Message, Renderer, answer_end, checked
from chainrule.text.chat.prompts import marked_ids, prompt_ids, shielded
from chainrule.text.tokenizer import Tokenizer
from chainrule.types import Ids


class Part(NamedTuple):
    """A part of a written conversation: an answer up to the end of its turn, or what is given before it."""

    text: str
    answer: bool


class Tokens(NamedTuple):
    """A conversation as a model reads it."""

    ids: Ids  # (n,)
    learned: npt.NDArray[np.bool_]  # (n,)


def masked_ids(
    tokenizer: Tokenizer, format: Renderer, conversations: Sequence[Sequence[Message]]
) -> list[Tokens]:
    """The ids of each conversation up to its last answer, and which of them are learned.

    Names of special tokens in a content are ordinary text.

    >>> from chainrule.text import FORMATS, CharTokenizer
    >>> from chainrule.text.chat.roles import chat_tokenizer
    >>> tokenizer = chat_tokenizer(CharTokenizer.train(" ?Whyes"))
    >>> talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "yes"}]
    >>> ids, learned = masked_ids(tokenizer, FORMATS["roles"], [talk])[0]
    >>> tokenizer.decode(ids[learned])
    ' yes<|end|>'
    """
    plain = [
        [{**m, "content": shielded(tokenizer, m["content"])} for m in checked(messages)]
        for messages in conversations
    ]
    return [_encoded(tokenizer, parts) for parts in written(tokenizer, format, plain)]


def written(
    tokenizer: Tokenizer, format: Renderer, conversations: Sequence[Sequence[Message]]
) -> list[list[Part]]:
    """Each conversation as text, in parts that are given and answers in turn."""
    turns = [
        (number, place)
        for number, messages in enumerate(conversations)
        for place, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    before = format.render_all([conversations[n][:place] for n, place in turns], add_generation_prompt=True)
    after = format.render_all([conversations[n][: place + 1] for n, place in turns])
    end = answer_end(tokenizer, format)
    mark = tokenizer.piece(end) if isinstance(end, int) else ""
    found: list[list[Part]] = [[] for _ in conversations]
    done = [""] * len(conversations)
    for (number, place), given, said in zip(turns, before, after, strict=True):
        if not (given.startswith(done[number]) and said.startswith(given)):
            rule = "must write one turn after the other: where its answers begin is not known"
            raise FormatError(f"chat template: message {place} changes what stands before it ({rule})")
        answer = said[len(given) :]
        if mark and mark in answer:
            answer = answer[: answer.index(mark) + len(mark)]
        found[number] += [Part(given[len(done[number]) :], False), Part(answer, True)]
        done[number] = given + answer
    return found


def _encoded(tokenizer: Tokenizer, parts: Sequence[Part]) -> Tokens:
    ids = [
        marked_ids(tokenizer, part.text, inside=True)
        if number
        else prompt_ids(tokenizer, part.text, special=True)
        for number, part in enumerate(parts)
    ]
    learned = [np.full(len(row), part.answer) for row, part in zip(ids, parts, strict=True)]
    empty = np.empty(0, np.int32)
    return Tokens(np.concatenate([empty, *ids]), np.concatenate([empty.astype(bool), *learned]))
