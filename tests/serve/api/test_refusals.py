"""A bad body is refused by the place, the value that was sent and the rule; unions by the form that was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chainrule.serve.api.errors import ApiError
from chainrule.serve.api.requests import Body, ChatRequest, CompletionRequest, EmbeddingRequest, parsed

FORMS = "a string, a list of strings, a list of token ids, or a list of such lists"
IMAGE = [{"type": "image_url", "image_url": {"url": "data:"}}]
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "shema": {}}}
CASES: list[tuple[type[Body], Any, str, str | None]] = [
    (CompletionRequest, [1, 2], "body: a list of 2 (must be a JSON object)", None),
    (CompletionRequest, {"top_p": 1.5}, "top_p: 1.5 (must be less than or equal to 1)", "top_p"),
    (CompletionRequest, {"seed": 2**70}, f"seed: {2**70} (must be less than or equal to {2**64 - 1})", "seed"),
    (CompletionRequest, {"seed": "x" * 99}, f'seed: "{"x" * 59}… (must be a valid integer)', "seed"),
    (
        CompletionRequest,
        {"logit_bias": {"5": 101}},
        "logit_bias.5: 101 (must be less than or equal to 100)",
        "logit_bias",
    ),
    (
        CompletionRequest,
        {"logit_bias": {str(i): 0 for i in range(1025)}},
        "logit_bias: 1,025 of them (must be at most 1,024)",
        "logit_bias",
    ),
    (CompletionRequest, {"prompt": 5}, f"prompt: 5 (must be {FORMS})", "prompt"),
    (CompletionRequest, {"prompt": ["a", None]}, "prompt.1: null (must be a valid string)", "prompt"),
    (CompletionRequest, {"prompt": [3, 4, -5]}, "prompt.2: -5 (must be greater than or equal to 0)", "prompt"),
    (CompletionRequest, {"prompt": [[3], [4, "x"]]}, 'prompt.1.1: "x" (must be a valid integer)', "prompt"),
    (CompletionRequest, {"stop": 5}, "stop: 5 (must be a string or a list of strings, none of them empty)", "stop"),
    (CompletionRequest, {"max_token": 5}, "max_token: no such field (did you mean max_tokens?)", "max_token"),
    (EmbeddingRequest, {"input": "", "a\nb\0": 1}, r"a\nb\u0000: no such field (known are model, input, "
     "encoding_format, dimensions, user)", r"a\nb\u0000"),
    (EmbeddingRequest, {}, "input: missing (must be given)", "input"),
    (ChatRequest, {"messages": []}, "messages: 0 of them (must be at least 1)", "messages"),
    (
        ChatRequest,
        {"messages": [{"role": "user", "content": IMAGE}]},
        'messages.0.content.0.type: "image_url" (must be text: images, audio and files are not read)',
        "messages",
    ),
    (
        ChatRequest,
        {"messages": [{"role": "user", "content": 5}]},
        "messages.0.content: 5 (must be a string, or a list of parts of type text)",
        "messages",
    ),
    (
        ChatRequest,
        {"messages": [{"role": "user", "content": ""}], "response_format": FORMAT},
        "response_format.json_schema.shema: no such field (did you mean schema?)",
        "response_format",
    ),
    (
        ChatRequest,
        {"messages": [{"role": "user", "content": ""}], "tool_choice": 5},
        "tool_choice: 5 (must be auto or none: no call can be forced)",
        "tool_choice",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "said", "param"), CASES)
def test_place_value_and_rule(kind: type[Body], body: Any, said: str, param: str | None) -> None:
    with pytest.raises(ApiError) as error:
        parsed(kind, json.dumps(body).encode())
    assert str(error.value) == said
    assert error.value.param == param and error.value.status == 400
