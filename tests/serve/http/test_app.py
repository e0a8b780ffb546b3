"""Every path of the server, through a socket; each answer is held against its published shape."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.generate import Decoder, Sampling, complete, embed
from chainrule.ops import log_softmax
from chainrule.serve.api import choices, responses
from chainrule.serve.http import app
from chainrule.serve.models import Served
from chainrule.text import CharTokenizer
from tests.serve.conftest import CONTEXT, LETTERS, Serving, writing_model


def events(serving: Serving, path: str, **body: Any) -> list[dict[str, Any]]:
    """The events of a stream, without [DONE] at its end."""
    with serving.client.stream("POST", path, json=body | {"stream": True}) as found:
        assert found.status_code == 200 and found.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in found.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_a_completion_is_that_of_the_library(serving: Serving) -> None:
    served = serving.models[0]
    body = {"prompt": "Once upon ", "max_tokens": 30, "temperature": 0.9, "top_p": 0.95, "seed": 7}
    found = serving.complete(model="tiny", **body)
    responses.CompletionResponse.model_validate(found, strict=True)
    sampling = Sampling(
        max_new_tokens=30, temperature=0.9, top_p=0.95, seed=7, stop_tokens=served.tokenizer.conventions.eos
    )
    model = writing_model(served.tokenizer.vocab_size)
    (expected,) = complete(model, served.tokenizer, ["Once upon "], sampling)
    assert found["choices"][0]["text"] == expected.text
    assert found["choices"][0]["finish_reason"] == expected.finish
    assert found["usage"]["completion_tokens"] == len(expected.tokens)


def test_all_four_forms_of_a_prompt(serving: Serving) -> None:
    ids = serving.post("/tokenize", prompt="abc")["tokens"]
    options = {"max_tokens": 5, "temperature": 0}
    one = [serving.complete(prompt=prompt, **options) for prompt in ("abc", ["abc"], ids, [ids])]
    assert len({found["choices"][0]["text"] for found in one}) == 1
    two = serving.complete(prompt=["abc", "xyz"], **options)["choices"]
    assert [choice["index"] for choice in two] == [0, 1] and two[0]["text"] == one[0]["choices"][0]["text"]
    assert serving.complete(**options)["choices"][0]["text"]  # of an empty prompt


@pytest.mark.parametrize("n", [1, 3])
def test_a_stream_is_the_plain_answer_piece_by_piece(serving: Serving, n: int) -> None:
    body = {"prompt": ["abc", "Zz"], "max_tokens": 25, "seed": 3, "n": n, "logprobs": 2, "echo": True}
    whole = serving.complete(**body)
    found = events(serving, "/v1/completions", **body, stream_options={"include_usage": True})
    for event in found:
        responses.CompletionResponse.model_validate(event, strict=True)
    assert found[-1]["choices"] == [] and found[-1]["usage"] == whole["usage"] | {
        "prompt_tokens_details": found[-1]["usage"]["prompt_tokens_details"]
    }
    for choice in whole["choices"]:
        parts = [c for e in found for c in e["choices"] if c["index"] == choice["index"]]
        assert "".join(part["text"] for part in parts) == choice["text"]
        assert [p["finish_reason"] for p in parts] == [None] * (len(parts) - 1) + [choice["finish_reason"]]
        for name, values in choice["logprobs"].items():
            assert [x for part in parts for x in part["logprobs"][name]] == values


def test_several_choices_have_seeds_that_follow_each_other(serving: Serving) -> None:
    texts = [c["text"] for c in serving.complete(prompt="abc", n=3, seed=5, max_tokens=12)["choices"]]
    assert texts == [
        serving.complete(prompt="abc", seed=5 + i, max_tokens=12)["choices"][0]["text"] for i in range(3)
    ]
    assert len(set(texts)) > 1


def test_the_best_of_several_is_the_likeliest(serving: Serving) -> None:
    body = {"prompt": "abc", "seed": 5, "max_tokens": 12}
    all_of_them = serving.complete(n=4, logprobs=0, **body)["choices"]
    means = [np.mean(choice["logprobs"]["token_logprobs"]) for choice in all_of_them]
    best = serving.complete(n=2, best_of=4, **body)
    assert [choice["text"] for choice in best["choices"]] == [
        all_of_them[i]["text"] for i in np.argsort(means)[::-1][:2]
    ]
    assert [choice["logprobs"] for choice in best["choices"]] == [None, None]
    assert best["usage"]["completion_tokens"] == 48


def test_log_probabilities_of_a_prompt_are_those_of_its_generation(serving: Serving) -> None:
    """To the bit: a text that was written greedily is scored alike when it is a prompt, and is the likeliest there."""
    body = {"model": "plain", "temperature": 0, "max_tokens": 20, "logprobs": 3}
    written = serving.complete(prompt="abcd", **body)["choices"][0]
    again = serving.complete(prompt="abcd" + written["text"], **body | {"max_tokens": 0, "echo": True})[
        "choices"
    ][0]
    responses.CompletionChoice.model_validate(again, strict=True)
    assert again["text"] == "abcd" + written["text"] and again["finish_reason"] == "length"
    logprobs = again["logprobs"]
    assert logprobs["token_logprobs"][0] is None and logprobs["top_logprobs"][0] is None
    for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        assert logprobs[name][4:] == written["logprobs"][name]
    for logprob, top in zip(logprobs["token_logprobs"][4:], logprobs["top_logprobs"][4:], strict=True):
        assert logprob == max(top.values())
    assert logprobs["text_offset"] == list(range(24))


def test_log_probabilities_of_a_prompt_are_those_of_the_library(serving: Serving) -> None:
    """To the bit, though the server reads the prompt in chunks, beside others."""
    served = serving.models[0]
    text = "The quick brown fox. " * 20
    ids = served.tokenizer.encode(text)
    rows = Decoder(writing_model(served.tokenizer.vocab_size)).prefill([ids], every=True)
    logs = log_softmax(rows)[np.arange(len(ids) - 1), ids[1:]]
    with ThreadPoolExecutor(3) as pool:
        body = {"prompt": ids.tolist(), "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0}
        others = [
            pool.submit(serving.complete, prompt="x" * 90, max_tokens=50, seed=seed) for seed in range(2)
        ]
        found = serving.complete(**body)["choices"][0]["logprobs"]
        assert all(other.result() for other in others)
    assert found["token_logprobs"][1:-1] == [float(x) for x in logs]
    assert (
        found["token_logprobs"][-1]
        == max(found["top_logprobs"][-1].values())
        == float(log_softmax(rows[-1]).max())
    )


def test_stop_strings_and_their_tokens_are_left_out(serving: Serving) -> None:
    body = {"prompt": "ab", "temperature": 0, "max_tokens": 30, "logprobs": 0}
    text = serving.complete(**body)["choices"][0]["text"]
    stop = text[10:13]
    found = serving.complete(**body, stop=["never this", stop])["choices"][0]
    expected = text[: text.index(stop)]
    assert found["text"] == expected and found["finish_reason"] == "stop"
    assert "".join(found["logprobs"]["tokens"]) == expected


def test_options_reach_the_sampler(serving: Serving) -> None:
    a = serving.post("/tokenize", prompt="a")["tokens"][0]
    body = {"prompt": "b", "max_tokens": 8}
    assert serving.complete(**body, logit_bias={str(a): 100})["choices"][0]["text"] == "a" * 8
    spread = serving.complete(
        **body, temperature=0, logit_bias={str(a): 20}, frequency_penalty=2, presence_penalty=2
    )
    assert "a" in spread["choices"][0]["text"]
    top = {serving.complete(**body, top_k=1, seed=seed)["choices"][0]["text"] for seed in range(3)}
    assert top == {serving.complete(**body, temperature=0)["choices"][0]["text"]}


def test_chat(serving: Serving) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    body = {"messages": messages, "max_completion_tokens": 20, "seed": 2, "logprobs": True, "top_logprobs": 2}
    whole = serving.post("/v1/chat/completions", **body)
    responses.ChatResponse.model_validate(whole, strict=True)
    ids = serving.post("/tokenize", messages=messages)["tokens"]
    assert whole["usage"]["prompt_tokens"] == len(ids)
    text = serving.complete(prompt=ids, max_tokens=20, seed=2)["choices"][0]["text"]
    choice = whole["choices"][0]
    assert choice["message"]["content"] == text.removeprefix(" ")
    assert "".join(token["token"] for token in choice["logprobs"]["content"]) == text
    for token in choice["logprobs"]["content"]:
        assert token["bytes"] == list(token["token"].encode()) and len(token["top_logprobs"]) == 2
    found = events(serving, "/v1/chat/completions", **body)
    for event in found:
        responses.ChatChunk.model_validate(event, strict=True)
    deltas = [event["choices"][0]["delta"] for event in found]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == choice["message"]["content"]


def test_a_model_without_a_template_plays_two_speakers(serving: Serving) -> None:
    body = {"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}
    ids = serving.post("/tokenize", **body)["tokens"]
    assert serving.post("/detokenize", model="plain", tokens=ids)["prompt"] == "User: Hi\nAssistant:"
    found = serving.post("/v1/chat/completions", **body, seed=1)
    assert found["usage"]["total_tokens"] <= 64 and "User:" not in found["choices"][0]["message"]["content"]


def test_embeddings_are_those_of_the_library(serving: Serving) -> None:
    texts = ["the cat", "the dog sat on the mat", ""]
    served = serving.models[2]
    expected = embed(served.embedder.model, served.tokenizer, texts)
    found = serving.post("/v1/embeddings", model="bert", input=texts)
    responses.EmbeddingResponse.model_validate(found, strict=True)
    np.testing.assert_array_equal(np.array([d["embedding"] for d in found["data"]], np.float32), expected)
    coded = serving.post("/v1/embeddings", model="bert", input="the cat", encoding_format="base64")["data"][0]
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(coded["embedding"]), "<f4"), expected[0])
    ids = served.tokenizer.encode("the cat").tolist()
    same = serving.post("/v1/embeddings", model="bert", input=[ids, ids])["data"]
    assert same[0]["embedding"] == same[1]["embedding"] == found["data"][0]["embedding"]
    assert "must be 16" in serving.refused("/v1/embeddings", model="bert", input="a", dimensions=8)["message"]


def test_tokens_and_models(serving: Serving) -> None:
    found = serving.post("/tokenize", prompt="Hi!", return_token_strs=True)
    responses.TokenizeResponse.model_validate(found, strict=True)
    assert found["token_strs"] == ["H", "i", "!"] and found["max_model_len"] == CONTEXT
    assert serving.post("/detokenize", tokens=found["tokens"]) == {"prompt": "Hi!"}
    for text, names in {"<|end|>a": ["<|end|>", "a"], "": []}.items():
        bare = serving.post("/tokenize", prompt=text, add_special_tokens=False, return_token_strs=True)
        assert bare["token_strs"] == names
    info = serving.client.get("/tokenizer_info").json()
    responses.TokenizerInfo.model_validate(info, strict=True)
    assert info["eos_token"] == "<|end|>"
    listed = serving.client.get("/v1/models").json()
    responses.ModelList.model_validate(listed, strict=True)
    assert [card["id"] for card in listed["data"]] == ["tiny", "plain", "bert"]
    assert serving.client.get("/v1/models/plain").json() == listed["data"][1]


def test_metrics_count(serving: Serving) -> None:
    def counted() -> dict[str, float]:
        lines = serving.client.get("/metrics").text.splitlines()
        return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    before = counted()
    serving.complete(model="plain", prompt="abc", max_tokens=5, temperature=0)
    after = counted()
    assert (
        after['chainrule_tokens_total{model="plain"}'] == before['chainrule_tokens_total{model="plain"}'] + 5
    )
    name = "chainrule_time_to_first_token_seconds_count"
    assert after[name] == before[name] + 1
    assert after['chainrule_requests_total{path="/v1/completions",status="200"}'] >= 1


def test_the_openapi_document_describes_every_path(serving: Serving) -> None:
    document = serving.client.get("/openapi.json").json()
    assert {"/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/tokenize", "/health"} <= set(
        document["paths"]
    )

    def refs(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                yield from [value] if key == "$ref" else refs(value)
        elif isinstance(node, list):
            for value in node:
                yield from refs(value)

    listed = document["paths"]["/v1/completions"]["post"]["responses"]
    assert {"400", "401", "403", "404", "405", "408", "413", "415", "429", "500", "503"} <= set(listed)
    names = {ref.rsplit("/", 1)[1] for ref in refs(document)}
    assert names <= set(document["components"]["schemas"]) and "HTTPValidationError" not in names


ASKED = {"messages": [{"role": "user", "content": "a"}]}
REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("/v1/completions", {"model": "other"}, 404, "'other' is not served (must be one of tiny, plain, bert)"),
    ("/v1/completions", {"model": "bert"}, 400, "does not write"),
    ("/v1/embeddings", {"model": "tiny", "input": "a"}, 400, "makes no embeddings"),
    ("/v1/completions", {"prompt": []}, 400, "prompt: "),
    ("/v1/completions", {"prompt": [10**6]}, 400, "prompt: token 1000000 (must be from 0 to 9"),
    ("/v1/completions", {"prompt": [[1], [10**6]]}, 400, "prompt: token 1000000 (must be from 0 to 9"),
    ("/v1/embeddings", {"model": "bert", "input": [10**6]}, 400, "input: token 1000000 (must be from 0 to "),
    ("/v1/completions", {"prompt": "é"}, 400, "é"),
    ("/v1/completions", {"prompt": "a", "n": 17}, 400, "prompt: 17 texts in one request (must be at most 16 on"),
    ("/v1/completions", {"prompt": "a", "n": 2, "best_of": 1}, 400, "best_of: 1 for n 2"),
    ("/v1/completions", {"prompt": "a", "best_of": 2, "stream": True}, 400, "best_of: with stream"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 5000}, 400, "1 tokens and max_tokens 5,000 (the model's context"),
    ("/v1/completions", {"prompt": "a" * 2100}, 400, "the model's context is 2,048"),
    ("/v1/completions", {"prompt": "a", "temperature": "1"}, 400, 'temperature: "1" (must be a valid number)'),
    ("/v1/completions", {"prompt": "a", "temperature": -1}, 400, "temperature: -1 (must be greater than or equal"),
    ("/v1/completions", {"prompt": "a", "logprobs": 21}, 400, "logprobs: 21 (must be less than or equal to 20)"),
    ("/v1/completions", {"prompt": "a", "stop": ["x"] * 17}, 400, "stop: 17 strings (must be at most 16)"),
    ("/v1/completions", {"prompt": "a", "stop": [""]}, 400, "stop: a string of 0 characters"),
    ("/v1/completions", {"prompt": "a", "logit_bias": {"x": 1}}, 400, "logit_bias: key 'x' (must be a token id)"),
    ("/v1/completions", {"prompt": "a", "logit_bias": {"9999": 1}}, 400, "logit_bias has token 9999"),
    ("/v1/completions", {"prompt": "a", "suffix": "b"}, 400, 'suffix: "b" (must be left out or empty: no text'),
    ("/v1/completions", {"prompt": "a", "wat": 1}, 400, "wat: no such field (known are model, "),
    ("/v1/completions", {"prompt": "a", "max_new_tokens": 1}, 400, "no such field (did you mean max_tokens?)"),
    ("/v1/completions", {"prompt": "a", "stream_options": {}}, 400, "stream_options: without stream"),
    ("/v1/chat/completions", {}, 400, "messages: missing"),
    ("/v1/chat/completions", {"messages": [{"role": "king", "content": ""}]}, 400, 'messages.0.role: "king" (must be '),
    ("/v1/chat/completions", {"messages": [{"role": "user"}]}, 400, "messages.0: no content"),
    ("/v1/chat/completions", ASKED | {"tools": [{}]}, 400, "does not call tools"),
    ("/v1/chat/completions", ASKED | {"top_logprobs": 2}, 400, "without logprobs"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a", "wat": 1}]}, 400, "known are role, con"),
    ("/v1/completions", {"prompt": ["a" * 2000] * 13, "echo": True, "logprobs": 20}, 400,
     "logprobs: 26,000 tokens to score, each with 21 numbers (must be at most 524,288"),
    ("/v1/chat/completions", ASKED | {"response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "object", "description": "a" * 70_000}}}}, 400, "must be at most 65,536 bytes"),
    ("/tokenize", {}, 400, "give either prompt or messages"),
    ("/detokenize", {"tokens": [10**12]}, 400, "tokens: token 1000000000000 (must be from 0 to "),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "said"), REFUSED)
def test_what_is_wrong_is_said_in_one_line(
    serving: Serving, path: str, body: dict[str, Any], status: int, said: str
) -> None:
    error = serving.refused(path, status, **body)
    assert said in error["message"] and "\n" not in error["message"]
    assert error["type"] == "invalid_request_error"
    if status == 400:
        assert error["param"] and not error["message"].startswith(("sample:", "serve:"))


def test_other_paths_and_methods_have_the_error_object_too(serving: Serving) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/v1/completions", 405),
        ("GET", "/v1/models/x", 404),
    ):
        found = serving.client.request(method, path)
        assert found.status_code == status
        responses.ErrorResponse.model_validate(found.json(), strict=True)


def test_a_model_without_a_context_has_a_limit_too() -> None:
    tokenizer = CharTokenizer(LETTERS)
    model = cr.models.make("lstm", n_layer=1, n_embd=8, vocab_size=tokenizer.vocab_size)
    endless = Serving([Served("endless", model, tokenizer, slots=1)])
    assert endless.models[0].context is None
    for path, more in {"/v1/completions": {}, "/v1/chat/completions": ASKED}.items():
        error = endless.refused(path, max_tokens=32769, **more)
        assert "max_tokens: 32,769 (must be at most 32,768)" in error["message"]
    assert endless.complete(max_tokens=3)["usage"]["completion_tokens"] == 3
    endless.close()


def test_a_message_of_the_client_can_be_sent_back(serving: Serving) -> None:
    """As the package openai dumps it, with every field that it knows."""
    fields = ("refusal", "annotations", "audio", "function_call", "tool_calls")
    said = {"role": "assistant", "content": "a"} | dict.fromkeys(fields)
    assert serving.post("/v1/chat/completions", messages=[*ASKED["messages"], said], max_tokens=1)


def test_what_may_take_long_is_not_done_where_all_others_wait(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies are parsed and answers are made and dumped by other threads than that of the sockets."""
    seen: dict[str, int | None] = {}

    def watched(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any) -> Any:
            seen[name] = threading.current_thread().ident
            return real(*args)

        monkeypatch.setattr(owner, name, call)

    for owner, name in ((app, "parsed"), (app, "dumped"), (choices, "_by_text"), (app.tokens, "tokenize")):
        watched(owner, name)
    serving.complete(prompt="a", max_tokens=2, logprobs=1)
    serving.post("/tokenize", prompt="a")
    assert len(seen) == 4 and serving.thread.ident not in seen.values()


def test_an_answer_is_json_if_it_must_be(serving: Serving) -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"enum": ["Rome", "Oslo"]},
            "sunny": {"type": "boolean"},
            "days": {"type": "integer"},
        },
        "required": ["city", "sunny", "days"],
    }
    named = {"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}}
    for seed in range(3):
        found = serving.post(
            "/v1/chat/completions", **ASKED, response_format=named, seed=seed, max_tokens=200
        )
        choice = found["choices"][0]
        answer = json.loads(choice["message"]["content"])
        assert choice["finish_reason"] == "stop" and list(answer) == ["city", "sunny", "days"]
        assert answer["city"] in ("Rome", "Oslo") and isinstance(answer["days"], int)
    close = {str(serving.post("/tokenize", prompt="}")["tokens"][0]): 8}
    free = {"type": "json_object"}
    found = serving.post("/v1/chat/completions", **ASKED, response_format=free, seed=1, logit_bias=close)
    assert isinstance(json.loads(found["choices"][0]["message"]["content"]), dict)
    bad = {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "object", "minProperties": 1}},
    }
    error = serving.refused("/v1/chat/completions", **ASKED, response_format=bad)
    assert (
        "keyword 'minProperties' is not supported" in error["message"] and error["param"] == "response_format"
    )
