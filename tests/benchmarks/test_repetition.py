"""A text read again and again: the committed losses over eight epochs, beside those of new text."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from benchmarks.harness import ROOT
from benchmarks.lessons.repetition import COLUMNS, EPOCHS, SEEDS

TABLE = ROOT / "benchmarks" / "results" / "repetition.csv"


def losses(text: str) -> np.ndarray:
    """Of every seed that was run to the end: (seeds, epochs)"""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["text"] == text]
    assert tuple(rows[0]) == COLUMNS
    found = [
        [row for row in rows if row["seed"] == seed] for seed in dict.fromkeys(row["seed"] for row in rows)
    ]
    assert all([int(row["epoch"]) for row in each] == list(range(1, EPOCHS + 1)) for each in found)
    return np.array([[float(row["nats"]) for row in each] for each in found])


@pytest.mark.requirement("R-445")
def test_a_text_teaches_less_each_time_it_is_read() -> None:
    repeated, new = losses("repeated"), losses("new")
    assert len(repeated) == len(new) == SEEDS
    gains = -np.diff(repeated.mean(0))
    assert gains[0] > 3 * gains[-1] > 0  # the loss falls, and ever less
    behind = repeated.mean(0) - new.mean(0)
    assert behind[-1] > 2 * behind[1] > 0  # and the gap to a text that is always new grows
    error = repeated[:, -1].std(ddof=1) / np.sqrt(len(repeated))
    assert behind[-1] > 3 * error
