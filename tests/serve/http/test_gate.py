"""Who may call, and what is written down about it."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from chainrule.serve.http.gate import Gate, log_line
from tests.serve.conftest import Serving, char_model, until

KEY = "a key with ü"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    found = Serving([char_model(slots=1)], api_key=KEY, hosts=("models.example",))
    yield found
    found.close()


def bearer(key: str) -> dict[str, bytes]:
    return {"Authorization": b"Bearer " + key.encode()}


@pytest.mark.parametrize("path", ["/", "/v1/models", "/metrics", "/openapi.json", "/page/app.js", "/nothing"])
def test_every_path_but_health_needs_the_key(guarded: Serving, path: str) -> None:
    for headers in ({}, bearer("wrong"), {"Authorization": KEY.encode()}, {"Authorization": "Basic !"}):
        found = guarded.client.get(path, headers=headers)
        assert found.status_code == 401 and found.json()["error"]["code"] == "invalid_api_key"
    assert guarded.client.get(path, headers=bearer(KEY)).status_code == (404 if path == "/nothing" else 200)
    browser = base64.b64encode(f"anyone:{KEY}".encode()).decode()
    assert guarded.client.get(path, headers={"Authorization": f"Basic {browser}"}).status_code in (200, 404)


def test_no_key_fits_one_of_white_space() -> None:
    gate = Gate(lambda *_: None, None, (), api_key=" ")  # type: ignore[arg-type, return-value]
    for given in ("", "Bearer", "Bearer  ", "Basic Og==", "Digest  ", " "):
        assert not gate._has_key(given)


def test_health_needs_none(guarded: Serving) -> None:
    assert guarded.client.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("host", "status"),
    [("models.example:80", 200), ("localhost", 200), ("127.0.0.1:1", 200), ("[::1]:8000", 200), ("evil.example", 403),
     ("127.0.0.1.evil.example", 403), ("", 403)],
)  # fmt: skip
def test_names_of_others_are_refused(guarded: Serving, host: str, status: int) -> None:
    assert guarded.client.get("/health", headers={"Host": host}).status_code == status


def test_pages_of_other_sites_are_refused(guarded: Serving) -> None:
    for other in (
        "http://evil.example",
        "http://[",
        "null",
        "",
        guarded.url.removeprefix("http://"),
        "http://",
    ):
        assert guarded.client.get("/health", headers={"Origin": other}).status_code == 403
    own = guarded.client.get("/health", headers={"Origin": guarded.url})
    assert own.status_code == 200 and "access-control-allow-origin" not in own.headers


def test_requests_have_ids(guarded: Serving) -> None:
    ask = guarded.client.get
    assert ask("/health", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    made = {
        ask("/health", headers={"X-Request-Id": given}).headers["x-request-id"]
        for given in ("", "a b", "x" * 99)
    }
    assert len(made) == 3 and all(id.startswith("req-") for id in made)


def test_the_log_has_one_line_and_no_text(guarded: Serving) -> None:
    body: dict[str, Any] = {"prompt": "a secret", "max_tokens": 3, "temperature": 0}
    answer = guarded.client.post("/v1/completions", json=body, headers=bearer(KEY) | {"X-Request-Id": "seen"})
    until(lambda: any(line["id"] == "seen" for line in guarded.log))  # it is written after the answer
    (line,) = (line for line in guarded.log if line["id"] == "seen")
    text = answer.json()["choices"][0]["text"]
    assert line["id"] == "seen" and line["status"] == 200 and line["path"] == "/v1/completions"
    assert (line["model"], line["prompt_tokens"], line["completion_tokens"], line["finish"]) == (
        "tiny",
        8,
        3,
        "length",
    )
    assert "secret" not in str(line) and text not in str(line) and KEY not in str(line)


def test_a_line_of_the_log_is_ascii_and_stops_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log_line(path="/é\ud800")
    assert capsys.readouterr().err == '{"path": "/\\u00e9\\ud800"}\n'
    with open(os.devnull, "w") as gone:
        pass
    monkeypatch.setattr(sys, "stderr", gone)
    log_line(path="/")


def test_the_log_has_the_text_if_it_is_asked_for() -> None:
    serving = Serving([char_model(slots=1)], log_prompts=True)
    serving.complete(prompt="a secret", max_tokens=1)
    serving.close()
    assert serving.log[0]["body"]["prompt"] == "a secret"
