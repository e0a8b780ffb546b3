"""/v1/chat/completions: the next turn of a conversation, in the model's own format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chainrule.generate.requests import Request
from chainrule.serve.api.choices import Choice, Delta, chat_logprobs
from chainrule.serve.api.errors import refused
from chainrule.serve.api.generation import Generation, check_jobs
from chainrule.serve.api.requests import ChatRequest, MessageBody
from chainrule.serve.api.response_format import constraint_of
from chainrule.serve.api.sampling import check_text, room, sampling_of
from chainrule.serve.models import Served
from chainrule.text import Message, chat_ids
from chainrule.types import Ids

MAX_TOKENS = 512  # of an answer of a model whose context has no end, unless a request says otherwise


class ChatShape:
    """How answers in a conversation are written."""

    prefix, object, chunk = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self, served: Served) -> None:
        self.served = served

    def choice(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        message = {"role": "assistant", "content": delta.text, "refusal": None}
        return {"index": choice.index, "message": message} | self._end(choice, delta)

    def event(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        content = {"content": delta.text} if delta.text else {}
        return {"index": choice.index, "delta": content} | self._end(choice, delta)

    def opening(self, choice: Choice) -> dict[str, Any]:
        begun = {"role": "assistant", "content": ""}
        return {"index": choice.index, "delta": begun, "logprobs": None, "finish_reason": None}

    def _end(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        logprobs = chat_logprobs(self.served, delta.scored) if choice.scored else None
        return {"logprobs": logprobs, "finish_reason": delta.finish}


def chat(body: ChatRequest, served: Served) -> Generation:
    """A request, checked and encoded."""
    if body.tools or body.tool_choice not in (None, "none", "auto"):
        rule = "must be left out: this server has no model whose template calls tools"
        raise refused(f"tools: {served.name} does not call tools ({rule})", "tools", "unsupported")
    if body.top_logprobs is not None and not body.logprobs:
        raise refused("top_logprobs: without logprobs (must be with logprobs true)", "top_logprobs")
    n = body.n or 1
    check_jobs(served, n, "n")
    wanted = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    ids = conversation_ids(body.messages, served)
    most = MAX_TOKENS if served.context is None else served.context
    tokens = room(served, len(ids), wanted, most, "messages")
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
        ChatShape(served),
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
    found = [_message(message, place, served) for place, message in enumerate(messages)]
    check_text("".join(message["content"] for message in found), served, "messages")
    return chat_ids(served.tokenizer, served.format, found, add_generation_prompt=add_generation_prompt)


def _message(message: MessageBody, place: int, served: Served) -> Message:
    if message.role == "tool" or message.tool_calls:
        rule = "must be of system, user and assistant: this model does not call tools"
        raise refused(f"messages.{place}: a message about tools ({rule})", "messages", "unsupported")
    content = message.content
    if content is None:
        raise refused(f"messages.{place}: no content (must be a text)", "messages")
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    return {"role": "system" if message.role == "developer" else message.role, "content": text}
