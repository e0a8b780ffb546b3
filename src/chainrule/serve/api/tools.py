"""Tools: a template that knows them shows them to the model, and what the model calls is read from its answer.

Two ways of writing a call are known, those of most templates: `{"name": ..., "arguments": {...}}` between <tool_call>
and </tool_call>, and an answer that is nothing but such an object (or has `parameters` in place of `arguments`).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection
from typing import Any

from chainrule.serve.api.choices import Choice, Delta
from chainrule.serve.api.errors import refused
from chainrule.serve.api.requests import ChatRequest, MessageBody
from chainrule.serve.api.sampling import encoding
from chainrule.serve.api.shapes import ChatShape
from chainrule.serve.models import Served
from chainrule.text import ChatTemplate, prompt_ids
from chainrule.text.chat.prompts import shielded
from chainrule.types import Ids

CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def wants_tools(body: ChatRequest, served: Served) -> bool:
    """Whether a request needs a template with tools; it is refused if the model has none."""
    spoken = any(message.role == "tool" or message.tool_calls for message in body.messages)
    if body.tool_choice not in (None, "none", "auto"):
        raise refused(
            "tool_choice: must be auto or none: no call can be forced", "tool_choice", "unsupported"
        )
    if not (body.tools or spoken):
        return False
    if not (isinstance(served.format, ChatTemplate) and served.format.knows_tools):
        rule = "must be left out: its chat template has no place for tools"
        raise refused(f"tools: {served.name} does not call tools ({rule})", "tools", "unsupported")
    return True


def tool_ids(body: ChatRequest, served: Served) -> Ids:
    """The tokens of a conversation with tools, as the template writes it; contents name no special tokens."""
    assert isinstance(served.format, ChatTemplate)
    plain = _Plain(served)
    messages = [plain(_message(message, place)) for place, message in enumerate(body.messages)]
    tools = None if body.tool_choice == "none" else plain(body.tools)
    with encoding("messages"):
        text = served.format.render(messages, add_generation_prompt=True, tools=tools)
        return prompt_ids(served.tokenizer, text, special=True)


def tool_names(body: ChatRequest) -> frozenset[str]:
    """The names of the tools of a request."""
    functions = [tool.get("function") for tool in body.tools or ()]
    names = [function.get("name") if isinstance(function, dict) else None for function in functions]
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise refused(f"tools.{place}: no function.name (must be a text)", "tools")
    return frozenset(map(str, names))


class _Plain:
    """Any JSON with the names of special tokens in its texts changed, so that they are read as text."""

    def __init__(self, served: Served) -> None:
        self.tokenizer = served.tokenizer

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            return shielded(self.tokenizer, value)
        if isinstance(value, list):
            return [self(each) for each in value]
        return {k: self(v) for k, v in value.items()} if isinstance(value, dict) else value


def _message(message: MessageBody, place: int) -> dict[str, Any]:
    """A message for the template; arguments of calls are objects there, and text in a request."""
    if message.content is None and not message.tool_calls:
        raise refused(f"messages.{place}: no content (must be a text)", "messages")
    found: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": message.text,
    }
    for name in ("name", "tool_call_id"):
        if (value := getattr(message, name)) is not None:
            found[name] = value
    if message.tool_calls:
        found["tool_calls"] = [_with_arguments(call, place) for call in message.tool_calls]
    return found


def _with_arguments(call: dict[str, Any], place: int) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise refused(f"messages.{place}.tool_calls: a call without function.name", "messages")
    arguments = function.get("arguments", "{}")
    try:
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        raise refused(f"messages.{place}.tool_calls: arguments must be JSON", "messages") from None
    return call | {"function": function | {"arguments": arguments}}


def calls_in(text: str, names: Collection[str], most: int | None = None) -> tuple[str, list[dict[str, Any]]]:
    """The text of an answer without its calls, and the first calls of tools with these names; others stay text."""
    whole = text.strip()
    if whole.startswith("{") and not CALL.search(text):
        call = _call(whole, names)
        return ("", [call]) if call else (text, [])
    calls: list[dict[str, Any]] = []

    def taken(found: re.Match[str]) -> str:
        call = _call(found[1], names) if most is None or len(calls) < most else None
        if not call:
            return found[0]
        calls.append(call)
        return ""

    rest = CALL.sub(taken, text)
    return (rest.strip(), calls) if calls else (text, [])


def _call(text: str, names: Collection[str]) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name = found.get("name") if isinstance(found, dict) else None
    arguments = found.get("arguments", found.get("parameters")) if isinstance(found, dict) else None
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def tool_shape(body: ChatRequest, served: Served) -> ChatShape:
    """How an answer to a request with tools is written; one that may call none is a plain answer."""
    names = tool_names(body)
    if body.tool_choice == "none" or not names:
        return ChatShape(served)
    return ToolShape(served, names, 1 if body.parallel_tool_calls is False else None)


class ToolShape(ChatShape):
    """Answers that may call tools; whether one does is known at its end, so a stream sends it then, whole.

    `names` are those of the tools, `most` is how many calls an answer may have.
    """

    def __init__(self, served: Served, names: Collection[str], most: int | None) -> None:
        super().__init__(served)
        self.names = names
        self.most = most
        self._held: dict[int, list[Delta]] = {}

    def choice(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        text, calls = calls_in(delta.text, self.names, self.most)
        message = {"role": "assistant", "content": text or None if calls else text, "refusal": None}
        more = {"tool_calls": calls} if calls else {}
        return {"index": choice.index, "message": message | more} | self._end_with(choice, delta, calls)

    def event(self, choice: Choice, delta: Delta) -> dict[str, Any] | None:
        held = self._held.setdefault(choice.index, [])
        held.append(delta)
        if delta.finish is None:
            return None
        whole = Delta("".join(d.text for d in held), [s for d in held for s in d.scored], delta.finish)
        text, calls = calls_in(whole.text, self.names, self.most)
        content: dict[str, Any] = {"content": text} if text else {}
        if calls:
            content["tool_calls"] = [{"index": i} | call for i, call in enumerate(calls)]
        return {"index": choice.index, "delta": content} | self._end_with(choice, whole, calls)

    def _end_with(self, choice: Choice, delta: Delta, calls: list[dict[str, Any]]) -> dict[str, Any]:
        return self._end(choice, delta) | ({"finish_reason": "tool_calls"} if calls else {})
