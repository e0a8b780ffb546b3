"""`chainrule studio` from the outside: it answers at its address, and ends when it is told to."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from chainrule.cli import main
from chainrule.cli.commands.studio import HOST, USUAL, listening, place
from chainrule.errors import ConfigError


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "chainrule.cli",
        "studio",
        str(tmp_path / "runs"),
        "--no-open",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert address and "Runs will be in the new directory" in process.stdout.readline()
        try:
            answer = httpx.get(f"{address.group()}/health", timeout=60)  # it listens before it says so
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(60) in (0, 130)
        finally:
            process.kill()
    assert answer.json()["status"] == "ok"
    assert not (tmp_path / "runs").exists()  # looking makes nothing


def test_answers_are_sent_at_once() -> None:
    with listening(0) as bound:  # asyncio turns off Nagle's algorithm for what says that it is TCP
        assert bound.proto == socket.IPPROTO_TCP


def test_a_free_port_is_found() -> None:
    with listening(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port is {port} \(address already in use; choose another\)"):
            listening(port)
    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind((HOST, USUAL))
            usual.listen()
        except OSError:
            pass  # somebody's Studio runs here: it is taken all the same
        with listening(None) as found:
            assert found.getsockname()[1] != USUAL


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--port", "99999"], "--port is 99999 (must be from 1 to 65535"), (["FILE"], "is a file")],
)
def test_refusals(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "FILE").touch()
    with pytest.raises(SystemExit, match="2"):
        main(["studio", "--no-open", *(str(tmp_path / word) if word == "FILE" else word for word in words)])
    assert said in capsys.readouterr().err


def test_ctrl_c_twice_prints_no_traceback(tmp_path: Path) -> None:
    words = ["studio", str(tmp_path / "runs"), "--no-open", "--port", "0"]
    command = [sys.executable, "-m", "chainrule.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and "http" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130) and "Traceback" not in errors


def test_a_single_run_opens_its_microscope(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert place(tmp_path) == (tmp_path, "")
    (tmp_path / "mine" / "log.jsonl").touch()
    assert place(tmp_path / "mine") == (tmp_path.resolve(), "/microscope?run=mine")
