"""Trainings as processes: started, stopped, resumed, and ended with the Studio."""

from __future__ import annotations

import shutil
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


def listed(client: TestClient) -> Any:
    """The list of runs, however long it takes."""
    answer = client.get("/api/runs")
    while answer.status_code == 202:
        answer = client.get(f"/api/jobs/{answer.json()['job']}")
    return answer.json()


def test_a_training_is_started_stopped_and_resumed(tmp_path: Path) -> None:
    text, folder = tmp_path / "fox.txt", tmp_path / "runs"
    text.write_text(TEXT, encoding="utf-8")
    form = {"family": "gpt", "data": str(text), "steps": "1000000", "name": "fox", "options": OPTIONS}
    with TestClient(create_app(folder), base_url="http://localhost") as client:

        def line() -> Any:
            return next((each for each in listed(client)["runs"] if each["name"] == "fox"), None)

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
        until(lambda: any(e["name"] == "gpt" and e["steps"] for e in listed(client)["runs"]))
    for name in ("fox", "gpt"):  # the Studio has ended, and they saved themselves
        assert cr.runs.History.of(folder / name).state == "interrupted"


def test_a_training_that_fails_says_why_in_the_words_of_the_form(tmp_path: Path) -> None:
    text = tmp_path / "short.txt"
    text.write_text("a fox", encoding="utf-8")
    form = {
        "family": "gpt",
        "data": str(text),
        "steps": "5",
        "name": "short",
        "options": {"block_size": "64"},
    }
    app = create_app(tmp_path / "runs")
    with TestClient(app, base_url="http://localhost") as client:
        assert client.post("/api/train", json=form).status_code == 200
        assert "short" in listed(client)["waiting"]
        assert client.get("/api/runs/short").json()["state"] == "starting"
        until(lambda: not listed(client)["waiting"])
        assert client.get("/api/runs/short").json()["state"] == "failed"
        said = until(lambda: client.get("/api/runs/short").json()["problem"])
        assert "block_size" in said and "--" not in said and not said.startswith("error")
        again = client.post("/api/train", json=form)  # it would take the place of what failed
        assert again.status_code == 400 and again.json()["fields"] == ["name"]
        assert "run short: has failed (choose another name, such as short-2" in again.json()["error"]
    assert not (tmp_path / "runs" / "short").exists()


def test_a_name_that_is_taken_is_refused_with_a_free_one(ask: Any, runs: Path) -> None:
    form = {"family": "gpt", "data": "pydoc", "steps": "5", "name": "one"}
    (problem,) = ask("/api/train/check", form)["problems"]
    assert problem["fields"] == ["name"] and problem["error"] == ask("/api/train", form, status=400)["error"]
    assert "run one: is there already (choose another name, such as one-2" in problem["error"]


def test_a_finished_run_is_not_resumed_in_silence(ask: Any, runs: Path) -> None:
    assert "is finished after 12 steps" in ask("/api/resume/one", {}, status=400)["error"]


def test_a_run_that_was_deleted_says_so(ask: Any, runs: Path) -> None:
    shutil.rmtree(runs / "one")
    assert "run 'one': not in" in ask("/api/runs/one", status=400)["error"]
    assert "it was deleted or moved" in ask("/api/microscope/view", run="one", status=400)["error"]
