"""Tools: shown by a template that knows them, refused by others; calls are read from answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chainrule.serve.api import responses
from chainrule.serve.api.tools import calls_in
from chainrule.serve.models import Served
from chainrule.text import CharTokenizer
from tests.serve.conftest import LETTERS, Serving, writing_model
from tests.serve.http.test_app import events

TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}\n{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments.city }}{% endfor %}{% endfor %}assistant:"
)
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
CALL = {
    "type": "object",
    "properties": {"name": {"const": "weather"}, "arguments": {"const": {"city": "Rome"}}},
    "required": ["name", "arguments"],
}
FORCED = {"type": "json_schema", "json_schema": {"name": "call", "schema": CALL}}


@pytest.fixture(scope="module")
def tooled() -> Iterator[Serving]:
    tokenizer = CharTokenizer(LETTERS)
    tokenizer.conventions = replace(tokenizer.conventions, chat_template=TEMPLATE)
    found = Serving([Served("tooled", writing_model(tokenizer.vocab_size), tokenizer, slots=2)])
    yield found
    found.close()


def test_a_call_is_read_from_an_answer(tooled: Serving) -> None:
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": TOOLS, "response_format": FORCED}
    whole = tooled.post("/v1/chat/completions", **body)
    responses.ChatResponse.model_validate(whole, strict=True)
    choice = whole["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None
    assert call["function"] == {"name": "weather", "arguments": '{"city": "Rome"}'}
    found = events(tooled, "/v1/chat/completions", **body)
    for event in found:
        responses.ChatChunk.model_validate(event, strict=True)
    last = found[-1]["choices"][0]
    assert (
        last["finish_reason"] == "tool_calls"
        and last["delta"]["tool_calls"][0]["function"] == call["function"]
    )


def test_the_template_shows_tools_and_their_answers(tooled: Serving) -> None:
    asked: list[dict[str, Any]] = [{"role": "user", "content": "Rain?"}]
    called = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    talk = [
        *asked,
        {"role": "assistant", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "1", "content": "no"},
    ]
    options = {"max_tokens": 1}
    tokens = [
        tooled.post("/v1/chat/completions", messages=messages, **options, **more)["usage"]["prompt_tokens"]
        for messages, more in ((asked, {}), (asked, {"tools": TOOLS}), (asked, {"tools": TOOLS, "tool_choice": "none"}),
                               (talk, {}))
    ]  # fmt: skip
    shown = len(json.dumps(TOOLS)) + 1
    assert tokens == [tokens[0], tokens[0] + shown, tokens[0], tokens[0] + len("assistant: Rometool: no")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tool_choice": "required"}, "no call can be forced"),
        ({"tools": [*TOOLS, {"type": "function"}]}, "tools.1: no function.name"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "a call without function.name"),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}
                ]
            },
            "arguments must be JSON",
        ),
        ({"messages": [{"role": "tool"}]}, "no content"),
    ],
)
def test_what_cannot_be_called_is_refused(tooled: Serving, more: dict[str, Any], said: str) -> None:
    body = {"messages": [{"role": "user", "content": "a"}], "tools": TOOLS} | more
    assert said in tooled.refused("/v1/chat/completions", **body)["message"]


def test_calls_in_answers() -> None:
    known = ("f", "g")
    text, calls = calls_in(
        'Let me see. <tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>', known
    )
    assert text == "Let me see." and [c["function"]["name"] for c in calls] == ["f"]
    assert calls_in('{"name": "f", "parameters": {}}', known)[1][0]["function"]["arguments"] == "{}"
    unknown = '<tool_call>{"name": "h", "arguments": {}}</tool_call>'
    for other in ("Hello", '{"name": "f"}', '{"a": 1}', "<tool_call>{x}</tool_call>", "{", unknown):
        assert calls_in(other, known) == (other, [])
    two = [f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>' for name in known]
    for most, kept in ((None, ["f", "g"]), (1, ["f"])):
        text, calls = calls_in("".join(two), known, most)
        assert [call["function"]["name"] for call in calls] == kept and text == "".join(two[len(kept) :])


def test_no_call_is_read_that_may_not_be(tooled: Serving) -> None:
    body = {"messages": [{"role": "user", "content": "Rain?"}], "response_format": FORCED}
    other = [{"type": "function", "function": {"name": "time"}}]
    for more in ({"tools": TOOLS, "tool_choice": "none"}, {"tools": other}):
        choice = tooled.post("/v1/chat/completions", **body, **more)["choices"][0]
        assert choice["finish_reason"] == "stop" and "tool_calls" not in choice["message"]
        assert json.loads(choice["message"]["content"])["name"] == "weather"
