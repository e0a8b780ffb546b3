"""Models of runs: found, read once, and refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.web.models import KEPT, Models
from chainrule.web.runs.overview import Runs
from tests.web.conftest import trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models") / "runs"
    trained(made / "one", lr=0.01, save_every=4)
    (made / "empty").mkdir()
    (made / "empty" / "log.jsonl").touch()
    return made


def test_runs_with_checkpoints_are_listed(folder: Path) -> None:
    (line,) = Models(Runs(folder)).listed()
    assert (
        (line["name"], line["family"]) == ("one", "gpt")
        and line["steps"][-1] == 12
        and len(line["steps"]) > 1
    )


def test_a_model_is_read_once_and_a_checkpoint_is_another(folder: Path) -> None:
    models = Models(Runs(folder))
    steps = models.listed()[0]["steps"]
    with models.at(("one", None), ("one", steps[0])) as (first, old):
        assert first.model is not old.model
        expected, _ = cr.load(folder / "one" / "checkpoints" / f"step_{steps[0]:06d}")
        assert all(
            (old.model.state_dict()[name] == array).all() for name, array in expected.state_dict().items()
        )
    with models.at(("one", None)) as (again,):
        assert again is first
    assert len(models._loaded) <= KEPT


@pytest.mark.parametrize(
    ("name", "step", "said"),
    [
        ("one", 999, r"run 'one': no checkpoint at step 999 \(there are"),
        ("empty", None, "run 'empty': has no checkpoint yet"),
        ("gone", None, "run 'gone': not in .* \\(it was deleted or moved: choose another\\)"),
        ("../one", None, "must be the name of a run there"),
    ],
)
def test_refusals(folder: Path, name: str, step: int | None, said: str) -> None:
    with pytest.raises(cr.ConfigError, match=said), Models(Runs(folder)).at((name, step)):
        pass


def test_the_page_gets_the_list(ask: Any) -> None:
    assert ask("/api/models") == []


def test_beside_a_single_model_only_its_neighbors_are_listed(runs: Path) -> None:
    for deep, names in ((False, {"one"}), (True, {"one", "group/two"})):
        found = Runs(runs, deep)
        assert set(found.names()) == {each["name"] for each in Models(found).listed()} == names
