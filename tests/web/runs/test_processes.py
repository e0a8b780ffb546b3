"""Trainings as processes: started, stopped, resumed, and ended with the Studio."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.web.app import create_app
from tests.web.conftest import TEXT

OPTIONS = {"n_layer": "1", "n_head": "1", "n_embd": "8", "block_size": "8", "batch_size": "2"}


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """What the function returns once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_a_training_is_started_stopped_and_resumed(tmp_path: Path) -> None:
    text, folder = tmp_path / "fox.txt", tmp_path / "runs"
    text.write_text(TEXT, encoding="utf-8")
    form = {"family": "gpt", "data": str(text), "steps": "1000000", "name": "fox", "options": OPTIONS}
    with TestClient(create_app(folder), base_url="http://localhost") as client:

        def line() -> Any:
            return next(
                (each for each in client.get("/api/runs").json()["runs"] if each["name"] == "fox"), None
            )

        assert client.post("/api/train", json=form).json() == {"name": "fox"}
        again = client.post("/api/train", json=form)
        assert again.status_code == 400 and "is being trained" in again.json()["error"]
        until(lambda: (found := line()) and found["steps"] > 2)
        assert line()["state"] == "running" and line()["process"]["alive"]
        assert client.post("/api/stop/fox", json={}).status_code == 200
        until(lambda: not line()["process"]["alive"])
        assert line()["state"] == "interrupted"
        stopped = line()["steps"]
        refused = client.post("/api/stop/fox", json={})
        assert refused.status_code == 400 and "was not started here, or has ended" in refused.json()["error"]
        assert client.post("/api/resume/fox", json={}).json() == {"resumed": "fox"}
        until(lambda: line()["steps"] > stopped + 2)
        assert client.post("/api/train", json=form | {"name": ""}).json() == {"name": "gpt"}
        until(lambda: any(e["name"] == "gpt" and e["steps"] for e in client.get("/api/runs").json()["runs"]))
    for name in ("fox", "gpt"):  # the Studio has ended, and they saved themselves
        assert cr.runs.History.of(folder / name).state == "interrupted"


def test_a_training_that_fails_says_why(tmp_path: Path) -> None:
    form = {"family": "gpt", "data": str(tmp_path / "none.txt"), "steps": "5", "name": "none"}
    app = create_app(tmp_path / "runs")
    with TestClient(app, base_url="http://localhost") as client:
        assert client.post("/api/train", json=form).status_code == 200
        assert "none" in client.get("/api/runs").json()["waiting"]
        assert client.get("/api/runs/none").json()["state"] == "starting"
        until(lambda: not client.get("/api/runs").json()["waiting"])
        assert client.get("/api/runs/none").json()["state"] == "failed"
    assert not (tmp_path / "runs" / "none").exists()
