"""Fetching: from a server of our own, checked against the hash, whole or not at all."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chainrule.data import available, downloads, load, read_documents
from chainrule.data.downloads import NAMED, Download
from chainrule.errors import DataError

CONTENT = b"emma\nolivia\nava\n"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write({"/other": CONTENT.upper(), "/cut": CONTENT[:-3]}.get(self.path, CONTENT))

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def pin(monkeypatch: pytest.MonkeyPatch, url: str, size: int = len(CONTENT)) -> None:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    monkeypatch.setitem(NAMED, "names", Download("names", "MIT", url, size, sha256, "few", by="line"))


def test_a_corpus_is_fetched_once_and_found_by_name(
    server: str, monkeypatch: pytest.MonkeyPatch, nobodys_data: Path
) -> None:
    pin(monkeypatch, f"{server}/names.txt")
    heard: list[int] = []
    with pytest.raises(DataError, match="fetch it with: chainrule data get names"):
        load("names")
    path = downloads.get("names", heard.append)
    assert path == nobodys_data / "names.txt" and path.read_bytes() == CONTENT and sum(heard) == len(CONTENT)
    assert load("names").text == CONTENT.decode() and "names" in available()
    assert [d.text for d in read_documents("names")] == ["emma", "olivia", "ava"]
    pin(monkeypatch, "http://127.0.0.1:1/gone")
    assert downloads.get("names") == path  # no connection is opened for what is there
    assert [p.name for p in nobodys_data.iterdir()] == ["names.txt"]


def test_a_damaged_copy_is_fetched_again(
    server: str, monkeypatch: pytest.MonkeyPatch, nobodys_data: Path
) -> None:
    pin(monkeypatch, f"{server}/names.txt")
    nobodys_data.mkdir()
    (nobodys_data / "names.txt").write_text("damaged")
    assert downloads.get("names").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("address", "size", "message"),
    [
        ("/other", len(CONTENT), "has SHA-256 .* nothing was kept"),
        ("/names.txt", len(CONTENT) - 1, "has more bytes than it should .must have 15"),
        ("/missing", len(CONTENT), "cannot be fetched from .*Not Found"),
        ("/cut", len(CONTENT), "IncompleteRead|has SHA-256"),
    ],
)
def test_what_is_not_as_pinned_is_not_kept(
    server: str, monkeypatch: pytest.MonkeyPatch, nobodys_data: Path, address: str, size: int, message: str
) -> None:
    pin(monkeypatch, server + address, size)
    with pytest.raises(DataError, match=message) as error:
        downloads.get("names")
    assert "\n" not in str(error.value)
    assert not nobodys_data.exists()


def test_no_answer_and_unknown_names(monkeypatch: pytest.MonkeyPatch, nobodys_data: Path) -> None:
    monkeypatch.setenv("no_proxy", "*")
    pin(monkeypatch, "http://127.0.0.1:1/nobody")
    with pytest.raises(DataError, match=r"cannot be fetched from http://127\.0\.0\.1:1/nobody .*refused"):
        downloads.get("names")
    with pytest.raises(DataError, match=r"'nmaes': cannot be fetched \(did you mean names\?"):
        downloads.get("nmaes")


def test_every_address_is_pinned() -> None:
    for wanted in NAMED.values():
        assert wanted.url.startswith("https://raw.githubusercontent.com/")
        assert any(len(part) == 40 for part in wanted.url.split("/"))  # a commit, not a branch
        assert len(wanted.sha256) == 64 and wanted.bytes > 0 and wanted.license


def test_what_is_under_chainrule_data_comes_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobodys_data: Path
) -> None:
    nobodys_data.mkdir()
    (nobodys_data / "names.txt").write_text("cached")
    assert load("names").text == "cached"
    (tmp_path / "names.txt").write_text("mine")
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    assert load("names").text == "mine"
