"""The shell of the Studio: addresses, errors in words, and what a stranger may not do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.web.app import PAGE, create_app
from chainrule.web.bundle import views


def test_health(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok", "version": cr.__version__}


@pytest.mark.parametrize("path", views())
def test_every_view_has_an_address(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200 and "Chainrule Studio" in answer.text


def test_unknown_addresses(client: TestClient) -> None:
    assert client.get("/nothing").status_code == 404
    assert client.get("/api/nothing").json() == {"error": "/api/nothing: no such address"}
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
    assert client.get("/static/lib").status_code == 404


def test_a_file_that_a_browser_has_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/static/app.js")
    assert first.content == (PAGE / "app.js").read_bytes()
    assert first.headers["content-type"].startswith("text/javascript")
    again = client.get("/static/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_the_menu_of_the_page_is_that_of_the_server() -> None:
    source = (PAGE / "app.js").read_text(encoding="utf-8")
    assert re.findall(r'path: "([^"]+)"', source) == [*views()]
    assert all(module.is_file() for module in views().values())


def test_the_page_loads_only_itself_and_never_parses_markup() -> None:
    for path in [*PAGE.rglob("*.js"), *PAGE.rglob("*.css"), *PAGE.rglob("*.html")]:
        text = path.read_text(encoding="utf-8")
        known = text.replace("http://www.w3.org/", "")
        assert "http://" not in known and "https://" not in known, path
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style="):
            assert word not in text, f"{path.name}: {word}"


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/health", "/static/app.js", "/api/nothing", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy, path
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8420", "", "localhost.evil:80"])
def test_a_name_that_only_leads_here_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/health", headers={"Host": host})
    assert answer.status_code == 403 and "not this machine" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost:8420", "127.0.0.1", "[::1]:8420", "LOCALHOST:1"])
def test_local_names_are_served(client: TestClient, host: str) -> None:
    assert client.get("/health", headers={"Host": host}).status_code == 200


def test_other_pages_cannot_change_anything(client: TestClient) -> None:
    foreign = {"Origin": "https://evil.example", "Content-Type": "application/json"}
    assert client.delete("/api/jobs/1", headers=foreign).status_code == 403
    assert client.delete("/api/jobs/1").status_code == 403  # a form of another page sends no JSON
    mine = {"Origin": "http://127.0.0.1:8420", "Content-Type": "application/json"}
    assert client.delete("/api/jobs/1", headers=mine).status_code == 400


def test_a_body_that_is_too_large_is_not_read(client: TestClient) -> None:
    plain = {"Content-Type": "application/json"}
    for content in (b" " * 4_000_001, iter([b"{}"])):  # the second one does not say its size
        answer = client.post("/api/scaling/fit", content=content, headers=plain)
        assert answer.status_code == 403 and "at most 4,000,000 bytes" in answer.json()["error"]


def test_an_unexpected_error_is_one_line(tmp_path: Path) -> None:
    app = create_app(tmp_path)

    @app.get("/api/broken")
    async def broken() -> None:
        raise ZeroDivisionError("by 0")

    app.router.routes.insert(0, app.router.routes.pop())
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        answer = client.get("/api/broken")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the Studio failed: ZeroDivisionError: by 0"}


@pytest.mark.parametrize("path", ["%00", "a" * 300, "../app.py"])
def test_what_is_no_file_of_the_page(client: TestClient, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404
