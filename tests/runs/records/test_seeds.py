"""Means over seeds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from chainrule.runs.records.history import History
from chainrule.runs.records.seeds import Spread, alike, folder_of, folders, together


def history(seed: int, losses: list[float], *, lr: float = 1e-3, **scores: float) -> History:
    records = [{"step": step, "validation": loss, **scores} for step, loss in enumerate(losses, start=1)]
    settings = {"seed": seed, "lr": lr, "data": f"copy-{seed}.csv"}
    return History(Path(f"s{seed}"), "finished", "", "gpt", settings, {"data": {"sha256": "x"}}, records)


def test_the_standard_error_is_that_of_the_mean() -> None:
    values = [1.0, 1.5, 1.2, 2.0]
    found = Spread.of(values)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.error == pytest.approx(np.std(values, ddof=1) / 2)
    assert math.isnan(Spread.of([1.0]).error) and str(Spread.of([1.0])) == "1.0000"


def test_results_of_seeds_come_together() -> None:
    runs = [history(0, [3.0, 1.0, 1.5], accuracy=0.5), history(1, [3.0, 2.0, 2.5], accuracy=0.7)]
    found = together(runs)
    assert {name: spread.mean for name, spread in found.items()} == {
        "validation": 2.0,
        "best_validation": 1.5,
        "accuracy": pytest.approx(0.6),
    }
    other = history(2, [1.0], lr=1e-2)
    assert alike([runs[0], other, runs[1]]) == [runs, [other]]


def test_a_directory_of_seeds_is_known_by_its_runs(tmp_path: Path) -> None:
    for seed in (10, 2):
        folder_of(tmp_path, seed).mkdir()
        (folder_of(tmp_path, seed) / "log.jsonl").touch()
    (tmp_path / "seed-x").mkdir()
    (tmp_path / "seed-3").mkdir()  # nothing has begun there
    assert folders(tmp_path) == [tmp_path / "seed-2", tmp_path / "seed-10"]
    (tmp_path / "log.jsonl").touch()
    assert folders(tmp_path) == []
