"""Answers of a model to conversations, in its chat format: as many at once as fit, each up to the end of its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from chainrule.generate.requests import Request
from chainrule.generate.sample import Model, completions
from chainrule.generate.sampling import Sampling
from chainrule.text import Message, Tokenizer, chat_ids
from chainrule.text.chat.formats import Renderer, answer_end
from chainrule.text.chat.roles import own_format


def stopping(sampling: Sampling, tokenizer: Tokenizer, format: Renderer) -> Sampling:
    """The sampling of answers, which end where the format ends them."""
    end = answer_end(tokenizer, format)
    if isinstance(end, int):
        return replace(sampling, stop_tokens=(*sampling.stop_tokens, end))
    return sampling if end is None else replace(sampling, stop=(*sampling.stop, end))


def answers(
    model: Model,
    tokenizer: Tokenizer,
    asked: Iterable[tuple[Sequence[Message], Sampling]],
    *,
    format: Renderer | None = None,
    special: bool = False,
    tell: Callable[[int], None] = lambda tokens: None,
    **options: Any,
) -> Iterator[Request]:
    """What the model says next in each conversation, in order; the format is its own unless one is given.

    Names of special tokens in a message are these tokens if `special` is true; other options are those of
    `completions`.
    """
    format = format or own_format(tokenizer)
    rows = (
        (chat_ids(tokenizer, format, messages, special=special), stopping(how, tokenizer, format))
        for messages, how in asked
    )
    return completions(model, tokenizer, rows, tell=tell, **options)
