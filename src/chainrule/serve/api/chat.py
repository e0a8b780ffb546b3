"""/v1/chat/completions: the next turn of a conversation, in the model's own format."""

from __future__ import annotations

from dataclasses import replace

from chainrule.generate.requests import Request
from chainrule.serve.api.choices import Choice
from chainrule.serve.api.errors import refused
from chainrule.serve.api.generation import Generation, check_jobs
from chainrule.serve.api.requests import ChatRequest, MessageBody
from chainrule.serve.api.response_format import constraint_of
from chainrule.serve.api.sampling import check_text, encoding, sampling_of, tokens_left
from chainrule.serve.api.shapes import ChatShape
from chainrule.serve.api.tools import tool_ids, tool_shape, wants_tools
from chainrule.serve.models import Served
from chainrule.text import Message, chat_ids
from chainrule.types import Ids

MAX_TOKENS = 512  # of an answer of a model whose context has no end, unless a request says otherwise


def chat(body: ChatRequest, served: Served) -> Generation:
    """A request, checked and encoded."""
    if body.top_logprobs is not None and not body.logprobs:
        raise refused("top_logprobs: without logprobs (must be with logprobs true)", "top_logprobs")
    n = body.n or 1
    check_jobs(served, n, "n")
    wanted = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    tools = wants_tools(body, served)
    ids = tool_ids(body, served) if tools else conversation_ids(body.messages, served)
    most = MAX_TOKENS if served.context is None else served.context
    tokens = tokens_left(served, len(ids), wanted, most, "messages")
    sampling = served.answering(sampling_of(body, served))
    lead = getattr(served.format, "lead", "")
    choices = []
    for i in range(n):
        constraint = constraint_of(body.response_format, served)
        request = Request(
            ids,
            replace(sampling, max_new_tokens=tokens, seed=(sampling.seed + i) % 2**64),
            served.vocab_size,
            served.tokenizer,
            scored=bool(body.logprobs),
            top=body.top_logprobs or 0,
            constraint=constraint,
        )
        choices.append(Choice(served, i, request, lead=lead, scored=bool(body.logprobs)))
    return Generation(
        served,
        tool_shape(body, served) if tools else ChatShape(served),
        choices,
        len(ids),
        best=n,
        kept=n,
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
    )


def conversation_ids(
    messages: list[MessageBody], served: Served, *, add_generation_prompt: bool = True
) -> Ids:
    """The tokens of a conversation, as the model's template writes it."""
    found = [_message(message, place) for place, message in enumerate(messages)]
    check_text("".join(message["content"] for message in found), served, "messages")
    with encoding("messages"):
        return chat_ids(served.tokenizer, served.format, found, add_generation_prompt=add_generation_prompt)


def _message(message: MessageBody, place: int) -> Message:
    if message.content is None:
        raise refused(f"messages.{place}: no content (must be a text)", "messages")
    return {"role": "system" if message.role == "developer" else message.role, "content": message.text}
