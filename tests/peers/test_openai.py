"""The client of OpenAI, unmodified: its own types hold every answer, and its errors are those of our statuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import openai
import pytest
from openai import OpenAI
from openai.types import Completion, CreateEmbeddingResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from chainrule.generate import embed
from tests.serve.conftest import Serving, char_model, serving

__all__ = ["serving"]

ASKED = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def client(serving: Serving) -> Iterator[OpenAI]:
    with OpenAI(
        base_url=f"{serving.url}/v1", api_key="any", max_retries=0, _strict_response_validation=True
    ) as found:
        yield found


@pytest.fixture
def lenient(serving: Serving) -> Iterator[OpenAI]:
    """Where the published types are narrower than OpenAI's answers: an event has no reason to end yet, the first token
    of a prompt has no log-probability, embeddings come in base64."""
    with OpenAI(base_url=f"{serving.url}/v1", api_key="any", max_retries=0) as found:
        yield found


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny", "plain", "bert"]
    assert client.models.retrieve("plain").object == "model"


def test_completions(client: OpenAI, lenient: OpenAI) -> None:
    body = {"model": "plain", "prompt": ["abc", "xyz"], "max_tokens": 9, "seed": 4, "n": 2, "logprobs": 3}
    whole = client.completions.create(**body)
    assert len(whole.choices) == 4 and whole.usage and whole.usage.completion_tokens == 36
    logprobs = whole.choices[0].logprobs
    assert logprobs and logprobs.tokens and logprobs.token_logprobs and len(logprobs.tokens) == 9
    texts = [""] * 4
    for event in lenient.completions.create(**body, stream=True):
        for choice in event.choices:
            texts[choice.index] += choice.text
    assert texts == [choice.text for choice in whole.choices]


def test_log_probabilities_of_a_prompt(lenient: OpenAI) -> None:
    whole = lenient.completions.create(model="plain", prompt="abcd", max_tokens=0, echo=True, logprobs=1)
    logprobs = whole.choices[0].logprobs
    assert logprobs and logprobs.tokens == list("abcd") and logprobs.token_logprobs
    assert logprobs.token_logprobs[0] is None and all(x < 0 for x in logprobs.token_logprobs[1:])


def test_chat(client: OpenAI) -> None:
    body = {"model": "tiny", "messages": ASKED, "max_completion_tokens": 9, "seed": 4}
    whole = client.chat.completions.create(**body, logprobs=True, top_logprobs=2)
    content = whole.choices[0].message.content
    assert whole.choices[0].logprobs and whole.choices[0].logprobs.content
    text, usage = "", None
    for event in client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True}):
        text += "".join(choice.delta.content or "" for choice in event.choices)
        usage = event.usage or usage
    assert text == content and usage and usage.completion_tokens == whole.usage.completion_tokens
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    found = client.chat.completions.create(model="tiny", messages=ASKED, response_format=form, max_tokens=100)
    assert set(json.loads(found.choices[0].message.content)) == {"ok"}


def test_embeddings(lenient: OpenAI, serving: Serving) -> None:
    found = lenient.embeddings.create(model="bert", input=["the cat", "the dog"])
    served = serving.models[2]
    expected = embed(served.embedder.model, served.tokenizer, ["the cat", "the dog"])
    np.testing.assert_array_equal(np.array([each.embedding for each in found.data], np.float32), expected)


def test_errors(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.completions.create(model="none", prompt="a")
    assert missing.value.code == "model_not_found" and missing.value.param == "model"
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="plain", prompt="a", max_tokens=100)
    assert long.value.code == "context_length_exceeded"


def test_a_key() -> None:
    guarded = Serving([char_model(slots=1)], api_key="right")
    for key, good in (("wrong", False), ("right", True)):
        with OpenAI(base_url=f"{guarded.url}/v1", api_key=key, max_retries=0) as client:
            if good:
                assert client.models.list().data
            else:
                with pytest.raises(openai.AuthenticationError):
                    client.models.list()
    guarded.close()


CHAT = "/v1/chat/completions"
TEXTS = {"model": "plain", "prompt": ["abc", "xyz"], "max_tokens": 4, "seed": 1}
TALK = {"model": "tiny", "messages": ASKED, "max_tokens": 6, "seed": 1}
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
BODIES: list[tuple[str, dict[str, Any], Any]] = [
    ("/v1/completions", TEXTS, Completion),
    ("/v1/completions", TEXTS | {"n": 2, "logprobs": 5, "stop": ["a"]}, Completion),
    ("/v1/completions", TEXTS | {"best_of": 2, "temperature": 1.5}, Completion),
    ("/v1/completions", TEXTS | {"echo": True, "logprobs": 0, "max_tokens": 0}, Completion),
    (CHAT, TALK, ChatCompletion),
    (CHAT, TALK | {"n": 3, "logprobs": True, "top_logprobs": 4}, ChatCompletion),
    (CHAT, TALK | {"response_format": {"type": "json_object"}}, ChatCompletion),
    (
        CHAT,
        TALK | {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
        ChatCompletion,
    ),
    ("/v1/embeddings", {"model": "bert", "input": ["the cat", "the dog"]}, CreateEmbeddingResponse),
]
EVENTS = {Completion: Completion, ChatCompletion: ChatCompletionChunk}


def published(found: dict[str, Any]) -> dict[str, Any]:
    """An answer without the nulls that OpenAI sends and its published types leave out: the reason of an end that has
    not come, in events of completions, and the score of a prompt's first token."""
    for choice in found.get("choices", ()):
        if found["object"] == "text_completion" and choice["finish_reason"] is None:
            choice["finish_reason"] = "stop"
        for name in ("token_logprobs", "top_logprobs") if "text" in choice and choice["logprobs"] else ():
            values = choice["logprobs"][name]
            choice["logprobs"][name] = values[1:] if values[:1] == [None] else values
    return found


@pytest.mark.parametrize(("path", "body", "kind"), BODIES)
def test_every_answer_has_the_published_shape(
    serving: Serving, path: str, body: dict[str, Any], kind: Any
) -> None:
    """By the models of the client, strictly: no value of another type is converted."""
    kind.model_validate_json(json.dumps(published(serving.post(path, **body))), strict=True)
    if kind not in EVENTS or "best_of" in body:
        return
    more = {"stream": True, "stream_options": {"include_usage": True}}
    with serving.client.stream("POST", path, json=body | more) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines.pop() == "[DONE]" and len(lines) > 2
    for line in lines:
        EVENTS[kind].model_validate_json(json.dumps(published(json.loads(line))), strict=True)
