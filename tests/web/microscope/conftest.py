"""A Studio with a run of each family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from chainrule.web.app import create_app
from tests.web.families import make_families

Get = Callable[..., Any]


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_families(tmp_path_factory.mktemp("families") / "runs")


@pytest.fixture(scope="session")
def studio(families: Path) -> Iterator[TestClient]:
    with TestClient(create_app(families), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def get(studio: TestClient) -> Get:
    """Ask a part of the microscope; the answer, when it is there."""

    def wait(part: str, /, *, status: int = 200, **params: Any) -> Any:
        answer = studio.get(f"/api/microscope/{part}", params=params)
        while answer.status_code == 202:
            answer = studio.get(f"/api/jobs/{answer.json()['job']}")
        assert answer.status_code == status, answer.text
        return answer.json()

    return wait
