"""Bad bodies: whatever is sent, the answer is an answer or OpenAI's error object, and never the server's fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chainrule.serve.api.requests import (
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingRequest,
    TokenizeRequest,
)
from chainrule.serve.api.responses import ErrorResponse
from tests.serve.conftest import Serving

KINDS: dict[str, Any] = {
    "/v1/completions": CompletionRequest,
    "/v1/chat/completions": ChatRequest,
    "/v1/embeddings": EmbeddingRequest,
    "/tokenize": TokenizeRequest,
    "/detokenize": DetokenizeRequest,
}
TEXT = st.text(max_size=8) | st.sampled_from(
    ["tiny", "plain", "bert", "a", "user", "text", "json_schema", "<|end|>"]
)
SMALL = st.integers(-2, 20) | st.integers() | st.floats() | st.booleans() | st.none() | TEXT
ANYTHING = st.recursive(
    SMALL, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
MESSAGE = st.fixed_dictionaries({"role": TEXT, "content": TEXT | ANYTHING})


def bodies(path: str) -> Any:
    """Objects with the right names and any values, near to what is right or far from it."""
    near = {
        "max_tokens": st.integers(-1, 9), "max_completion_tokens": st.integers(-1, 9), "n": st.integers(0, 3),
        "messages": st.lists(MESSAGE, max_size=2), "prompt": TEXT | st.lists(st.integers(0, 99), max_size=4),
        "input": TEXT | st.lists(TEXT, max_size=3), "stream": st.booleans(), "model": TEXT,
    }  # fmt: skip
    fields = KINDS[path].model_fields
    known = {name: near.get(name, ANYTHING) | ANYTHING for name in fields}
    return st.fixed_dictionaries({}, optional=known | {"more": ANYTHING}) | ANYTHING


@pytest.mark.parametrize("path", list(KINDS))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_body_is_the_fault_of_the_server(serving: Serving, path: str, data: Any) -> None:
    body = data.draw(bodies(path))
    content = json.dumps(body).encode()  # with NaN and lone surrogates, as Python writes them
    found = serving.client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert found.status_code < 500 and found.status_code != 422, (content, found.text)
    if found.status_code != 200:
        ErrorResponse.model_validate(found.json(), strict=True)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CompletionRequest, {"prompt": ["a"] * 50 + [None] * 50}),
        (CompletionRequest, {"prompt": [[1, "x", "y"]] * 100}),
        (CompletionRequest, {"stop": [1] * 100}),
        (ChatRequest, {"messages": [{}] * 100}),
        (ChatRequest, {"messages": [{"role": "user", "content": [1] * 100}]}),
        (
            ChatRequest,
            {"messages": [{"role": "user", "content": "", "tool_calls": [1] * 100}], "tools": [1] * 100},
        ),
        (EmbeddingRequest, {"input": [None] * 100}),
        (DetokenizeRequest, {"tokens": [-1] * 100}),
    ],
)
def test_a_list_is_refused_by_its_first_bad_item(kind: Any, body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        kind.model_validate_json(json.dumps(body))
    assert error.value.error_count() <= 5


@pytest.mark.parametrize("path", list(KINDS))
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"a"',
        b"[" * 100_000,
        b'{"model": "\\ud800"}',
        b"1e999",
        b'{"n": 1e999}',
    ],
    ids=range(10),
)
def test_what_is_no_json_object_is_called_that(serving: Serving, path: str, content: bytes) -> None:
    found = serving.client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert found.status_code == 400
    ErrorResponse.model_validate(found.json(), strict=True)
