"""The command as a process of its own: it says where it is, drains on SIGTERM, and refuses what cannot be."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chainrule.cli import main
from chainrule.serve.http.address import bound, is_local
from tests.serve.conftest import until


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "text.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * 600)
    small = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "2048", "--max-steps", "1"]
    size = [*small, "--batch-size", "1"]
    main(["train", "gpt", str(folder / "text.txt"), *size, "--out", str(folder / "fox")])
    return folder / "fox"


@pytest.fixture
def process(run_folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "chainrule.cli", "serve", str(run_folder), "--port", "0", "--slots", "2"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout
    line = started.stdout.readline()
    found = re.match(r"serving at (http://127\.0\.0\.1:\d+) ", line)
    assert found, line + (started.stderr.read() if started.stderr else "")
    yield started, found[1]
    started.kill()
    started.wait()


def test_sigterm_lets_running_requests_end(process: Any) -> None:
    started, url = process
    assert "/v1/completions" in started.stdout.readline()
    memory = r"fox: [\d.]+ MB of weights, ([\d.]+) MB of caches at most, [\d.]+ MB in all\n"
    said = re.fullmatch(memory, started.stdout.readline())
    assert said and float(said[1]) == round(
        2 * 2048 * 4 * 2 * (8 + 32) / 2**20, 1
    )  # slots, tokens, 2 heads of 8
    assert httpx.get(f"{url}/health").status_code == 200
    ended: list[Any] = []
    begun = threading.Barrier(5)

    def ask(number: int) -> None:
        body = {"prompt": "The", "max_tokens": 1500, "seed": number, "stream": True}
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=60) as answer:
            lines = answer.iter_lines()
            first = next(lines) if number < 2 else None  # the others wait in the queue
            begun.wait(30)
            ended.append([line for line in [first, *lines] if line][-2:])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(30)
    os.kill(started.pid, signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert started.wait(30) == 0
    assert len(ended) == 4
    for last, done in ended:
        assert done == "data: [DONE]"
        assert json.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] in ("length", "stop")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/health")
    said = started.stderr.read().splitlines()
    log = [line for line in said if line.startswith("{")]  # what loads for long says so before
    lines = [json.loads(line) for line in log]
    assert [line["status"] for line in lines] == [200] * 4


def test_a_second_signal_does_not_wait(process: Any) -> None:
    started, url = process
    with httpx.stream(
        "POST", f"{url}/v1/completions", json={"max_tokens": 2000, "stream": True}, timeout=60
    ) as answer:
        next(answer.iter_lines())
        os.kill(started.pid, signal.SIGINT)
        os.kill(started.pid, signal.SIGINT)
        until(lambda: started.poll() is not None)
    assert started.returncode == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--host", "0.0.0.0"],
            "--host is 0.0.0.0 without --api-key (must have one, or set CHAINRULE_API_KEY: others can reach",
        ),
        (["--api-key", ""], "--api-key is empty (must be a key, or left out)"),
        (["--api-key", " \n"], "--api-key is empty (must be a key, or left out)"),
        (["--port", "70000"], "--port is 70000 (must be an integer, from 0 to 65535)"),
        (["--slots", "0"], "--slots is 0 (must be an integer, from 1 to 1024)"),
        (["a b=x"], "must be a directory, or NAME=DIR"),
        (
            ["--allow-host", "http://x/"],
            "--allow-host is 'http://x/' (must be a name alone, such as models.example",
        ),
        (["--allow-host", "x:80"], "--allow-host is 'x:80' (must be a name alone"),
        (
            ["--host", "192.0.2.1", "--api-key", "k"],
            f"--host is '192.0.2.1': {os.strerror(errno.EADDRNOTAVAIL)} (must be",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(
    flags: list[str], said: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", str(run_folder), *flags])
    assert end.value.code == 2 and said in capsys.readouterr().err


def test_a_host_that_has_no_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(*question: object, **more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    said = "(must be an address or a name of this machine, such as 127.0.0.1)"
    for key in (["--api-key", "k"], []):  # a host that is mistyped lacks no key
        with pytest.raises(SystemExit) as end:
            main(["serve", "no/such/model", "--host", "0.0.0.0x", *key])
        err = capsys.readouterr().err
        assert end.value.code == 2 and "serve: --host is '0.0.0.0x': Name or" in err and said in err


def test_a_port_that_is_taken_is_refused_before_anything_is_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = bound("127.0.0.1", 0)
    taken.listen()
    port = taken.getsockname()[1]
    with pytest.raises(SystemExit) as end:
        main(["serve", "no/such/model", "--port", str(port)])
    taken.close()
    assert end.value.code == 2 and f"127.0.0.1 port {port}: Address already in use" in capsys.readouterr().err


@pytest.mark.parametrize("flag", [True, False])
def test_the_example_names_the_key_where_it_is(flag: bool, run_folder: Path) -> None:
    command = [sys.executable, "-m", "chainrule.cli", "serve", str(run_folder), "--port", "0"]
    given = ["--api-key", "hunter2"] if flag else []
    environment = os.environ if flag else os.environ | {"CHAINRULE_API_KEY": "hunter2"}
    with subprocess.Popen([*command, *given], stdout=subprocess.PIPE, text=True, env=environment) as started:
        assert started.stdout
        shown = started.stdout.readline() + started.stdout.readline()
        started.kill()
    assert f"Bearer {'YOUR_KEY' if flag else '$CHAINRULE_API_KEY'}" in shown and "hunter2" not in shown


def test_packets_are_sent_at_once() -> None:
    """asyncio sees to it for a socket that says it is TCP."""
    sock = bound("127.0.0.1", 0)
    assert sock.proto == socket.IPPROTO_TCP
    sock.close()


def test_addresses_of_this_machine() -> None:
    assert all(map(is_local, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_local, ("0.0.0.0", "::", "10.0.0.1", "example.org")))
