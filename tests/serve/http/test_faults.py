"""Clients that leave, do not read or ask too much, requests that fail: nobody else notices, and nothing is left."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from chainrule.serve import limits
from chainrule.serve.http import app, body, events, server
from chainrule.text import CharTokenizer
from chainrule.text.chat.roles import chat_tokenizer
from tests.serve.conftest import CONTEXT, LETTERS, Serving, char_model, until

END = chat_tokenizer(CharTokenizer(LETTERS)).conventions.eos[0]
LONG = {"prompt": "a", "max_tokens": CONTEXT - 1, "logit_bias": {str(END): -100}, "temperature": 1}


@pytest.fixture(scope="module")
def small() -> Iterator[Serving]:
    """Two slots and a queue of three."""
    found = Serving([char_model(slots=2, queue=3)])
    yield found
    found.close()


def idle(serving: Serving) -> bool:
    writer = serving.models[0].writer
    return writer.running == writer.waiting == serving.server.metrics.live == 0


def connected(serving: Serving, stream: bool) -> socket.socket:
    """A client that has asked for a long text."""
    host, port = serving.url.removeprefix("http://").split(":")
    content = json.dumps(LONG | {"stream": stream}).encode()
    client = socket.create_connection((host, int(port)))
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return client


@pytest.mark.parametrize("stream", [True, False])
def test_clients_that_leave_stop_the_work(small: Serving, stream: bool) -> None:
    writer, begun = small.models[0].writer, len(small.log)
    for number in range(20):
        clients = [connected(small, stream) for _ in range(4)]
        until(lambda: writer.running > 0)
        if stream and number % 2:
            assert clients[0].recv(1000)
        for client in clients:
            if number % 3 == 0:  # as a killed process does
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        until(lambda: idle(small))
    assert [line["status"] for line in small.log[begun:]].count(499) >= 40  # the rest was still being read
    decoder = writer.caches.decoder
    kept = sum(-(-length // decoder.pages.positions) for length in decoder.lengths)  # what ended texts left
    assert decoder.pages.held <= kept
    assert small.complete(prompt="a", max_tokens=3)["usage"]["completion_tokens"] == 3


def test_a_full_queue_says_so_at_once(small: Serving) -> None:
    clients = [connected(small, True) for _ in range(5)]
    writer = small.models[0].writer
    until(lambda: writer.running + writer.waiting == 5)
    answer = small.client.post("/v1/completions", json={"prompt": "a"})
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
    error = answer.json()["error"]
    assert error["code"] == "queue_full" and "must be at most 5" in error["message"]
    for client in clients:
        client.close()
    until(lambda: idle(small))


def test_a_request_that_fails_harms_no_other(small: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the model, for one text of several that are read together."""
    served = small.models[0]
    caches = served.writer.caches
    bad = served.tokenizer.encode("!")[0]
    read = caches.read

    def breaks(pieces: Any, slots: Any, every: Any) -> Any:
        if any(bad in piece for piece in pieces):
            raise FloatingPointError("secret detail")
        return read(pieces, slots, every)

    body = {"max_tokens": 40, "logit_bias": {str(bad): -100}, "seed": 3}
    expected = [small.complete(prompt=prompt, **body)["choices"][0]["text"] for prompt in ("abc", "abd")]
    monkeypatch.setattr(caches, "read", breaks)
    with ThreadPoolExecutor(5) as pool:
        good = [pool.submit(small.complete, prompt=prompt, **body) for prompt in ("abc", "abd")]
        failed = [pool.submit(small.refused, "/v1/completions", 500, prompt="x!y") for _ in range(3)]
        assert [each.result()["choices"][0]["text"] for each in good] == expected
        for each in failed:
            assert each.result()["code"] == "internal_error" and "secret" not in each.result()["message"]
    with small.client.stream("POST", "/v1/completions", json={"prompt": "x!", "stream": True}) as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert json.loads(lines[0].removeprefix("data: "))["error"]["type"] == "server_error"
    until(lambda: idle(small))


def test_one_that_biases_every_token_alike_is_answered(small: Serving) -> None:
    everything = {str(token): -100 for token in range(small.models[0].vocab_size)}
    assert small.complete(prompt="a", max_tokens=2, logit_bias=everything)  # -100 is not -inf
    until(lambda: idle(small))


def test_an_error_of_the_system_inside_is_not_a_client_that_left(
    small: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any) -> None:
        raise OSError("disk full")

    begun = len(small.log)
    with monkeypatch.context() as patch:
        patch.setattr(small.models[0].writer.caches, "read", breaks)
        with small.client.stream("POST", "/v1/completions", json={"prompt": "x", "stream": True}) as answer:
            lines = [line for line in answer.iter_lines() if line]
        assert json.loads(lines[0].removeprefix("data: "))["error"]["code"] == "internal_error"
    until(lambda: len(small.log) > begun)
    assert small.log[begun]["status"] == 500 and small.log[begun]["error"] == "disk full"


def test_a_server_that_works_no_more_is_not_healthy() -> None:
    serving = Serving([char_model(slots=1)])
    serving.server.worker.close()
    answer = serving.client.get("/health")
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "not_working"
    serving.close()


def test_a_client_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = limits.Limits(write_seconds=0.2)
    monkeypatch.setattr(events, "LIMITS", impatient)
    serving = Serving([char_model(slots=1)])
    host, port = serving.url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect((host, int(port)))
    content = json.dumps(LONG | {"stream": True, "logprobs": 20}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n\r\n"
    client.sendall(head.encode() + content)
    until(lambda: bool(serving.log))
    assert serving.log[0]["finish"] == "slow reader" and serving.log[0]["status"] == 499
    until(lambda: idle(serving))
    client.close()
    serving.close()


def raw(serving: Serving, content: bytes = b"", path: str = "/tokenize", buffer: int = 2048) -> socket.socket:
    """A client with a small buffer that has sent a request."""
    host, port = serving.url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(20)
    client.connect((host, int(port)))
    method = "POST" if content else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n\r\n"
    client.sendall(head.encode() + content)
    return client


def test_a_plain_answer_that_is_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LIMITS", limits.Limits(write_seconds=0.5))
    serving = Serving([char_model(slots=1)])
    content = json.dumps({"prompt": "a" * 300_000, "return_token_strs": True}).encode()
    deaf, slow = raw(serving, content), raw(serving, content, buffer=1 << 16)
    connections = serving.uvicorn.server_state.connections
    until(lambda: len(connections) == 2)
    size = 0
    while size < 2_000_000:  # one that reads is not, though it takes longer in all
        size += len(part := slow.recv(1 << 16))
        assert part
        time.sleep(0.03)
    until(lambda: len(connections) == 1)
    deaf.close()
    slow.close()
    serving.close()


def test_half_a_request_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LIMITS", limits.Limits(read_seconds=0.3))
    serving = Serving([char_model(slots=1)])
    client = raw(serving, path="/health")
    found = b""
    while not found.endswith(b'"ok"}'):
        found += client.recv(1000)
    for part in (b"GET /health HT", b"TP/1.1\r\n"):
        client.sendall(part)
        time.sleep(0.05)
    assert client.recv(1000) == b""
    client.close()
    serving.close()


def test_connections_and_requests_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LIMITS", limits.Limits(pending=0))
    serving = Serving([char_model(slots=1, queue=0)])
    busy = connected(serving, True)
    until(lambda: serving.server.metrics.live == 1)
    answer = serving.client.get("/v1/models")
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
    assert "more than 1 requests at a time" in answer.json()["error"]["message"]
    assert serving.client.get("/health").status_code == 200
    monkeypatch.setattr(server, "LIMITS", limits.Limits(connections=2))
    found = b""
    with suppress(OSError):  # it may be closed before or after the request
        found = raw(serving, path="/health").recv(1000)
    assert not found
    assert serving.client.get("/health").status_code == 200
    busy.close()
    until(lambda: idle(serving))
    serving.close()


def test_bodies_are_limited_before_they_are_read(small: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "LIMITS", limits.Limits(body_bytes=1000, read_seconds=0.2))
    large = b'{"prompt": "' + b"a" * 2000 + b'"}'
    kind = {"Content-Type": "application/json"}
    said = small.client.post("/v1/completions", content=large, headers=kind)
    chunked = small.client.post("/v1/completions", content=iter([large[:900], large[900:]]), headers=kind)
    for answer in (said, chunked):
        assert answer.status_code == 413 and answer.json()["error"]["code"] == "request_too_large"

    def slowly() -> Iterator[bytes]:
        yield b'{"prompt"'
        time.sleep(1)
        yield b': "a"}'

    with httpx.Client(base_url=small.url) as client:
        late = client.post("/v1/completions", content=slowly(), headers=kind)
    assert late.status_code == 408
    other = small.client.post("/v1/completions", content=b"{}", headers={"Content-Type": "text/plain"})
    assert other.status_code == 415


def test_streams_flow_while_a_long_prompt_is_read(small: Serving) -> None:
    """Between two tokens of a stream only a chunk of another prompt is read, not all of it."""
    writer = small.models[0].writer
    with small.client.stream("POST", "/v1/completions", json=LONG | {"stream": True}) as answer:
        lines = answer.iter_lines()
        next(lines)
        before = writer.counters.tokens
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(small.complete, prompt="b" * 1900, max_tokens=1)
            for _ in lines:
                if other.done():
                    break
            assert other.result()["usage"]["prompt_tokens"] == 1900
        assert writer.counters.tokens - before >= 1900 // 64
    until(lambda: idle(small))


def test_many_clients_at_once_get_what_they_get_alone(small: Serving) -> None:
    asked = [{"prompt": "abc" * (1 + n % 4), "max_tokens": 20, "seed": n} for n in range(5)]
    alone = [small.complete(**each)["choices"] for each in asked]
    barrier = threading.Barrier(5)

    def ask(each: dict[str, Any]) -> Any:
        barrier.wait()
        return small.complete(**each)["choices"]

    with ThreadPoolExecutor(5) as pool:
        for _ in range(3):
            assert list(pool.map(ask, asked)) == alone
