"""No test sees the data or the cache of the person who runs it."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nobodys_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache / "chainrule"
