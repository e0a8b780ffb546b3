"""The Studio without a network: requests go to the application in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from chainrule.web.app import create_app

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
