"""The client of OpenAI, unmodified: its own types hold every answer, and its errors are those of our statuses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import openai
import pytest
from openai import OpenAI

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
