"""The Studio without a network: requests go to the application in this process. Small runs were really trained."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.web.app import create_app

TEXT = "the quick brown fox jumps over the lazy dog and runs away from it.\n" * 60


def trained(folder: Path, **settings: float) -> Path:
    """A GPT after a dozen steps, with evaluations, samples and looks inside."""
    text = folder.parent / "fox.txt"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(TEXT, encoding="utf-8")
    config = cr.train.TrainConfig(
        max_steps=12, batch_size=4, eval_every=4, sample_every=4, watch_every=4, warmup=2, **settings
    )
    run = cr.runs.Run.new(folder, str(text), config, n_layer=1, n_head=2, n_embd=16, block_size=16)
    run.train()
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    trained(folder / "one", lr=0.01)
    trained(folder / "group" / "two", lr=0.02)
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of the runs in the directory of the Studio of this test."""
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


Ask = Callable[..., Any]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(tmp_path / "runs"), base_url="http://127.0.0.1:8420") as found:
        yield found


@pytest.fixture
def ask(client: TestClient) -> Ask:
    """GET, or POST a body, and wait for the end of a job; the body of the answer."""

    def wait(path: str, body: Any = None, *, status: int = 200, **params: Any) -> Any:
        answer = client.get(path, params=params) if body is None else client.post(path, json=body)
        while answer.status_code == 202:
            answer = client.get(f"/api/jobs/{answer.json()['job']}")
        assert answer.status_code == status, answer.text
        return answer.json()

    return wait
