"""Names of directories that several processes ask for at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chainrule.errors import ConfigError
from chainrule.runs.folder import make_empty, make_free


def test_many_who_ask_at_once_get_a_directory_each(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make_free(tmp_path / "runs/gpt", "log.jsonl"), range(20)))
    assert len({*made}) == 20 and all((path / "log.jsonl").is_file() for path in made)
    assert {path.name for path in made} == {"gpt", *(f"gpt-{n}" for n in range(2, 21))}


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(ConfigError, match="runs"):
        make_free(tmp_path / "runs/gpt")


def test_one_of_two_who_take_the_same_empty_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(()))  # both have looked, neither has written
    make_empty(tmp_path / "run", "log.jsonl")
    with pytest.raises(ConfigError, match="File exists"):
        make_empty(tmp_path / "run", "log.jsonl")
