"""A text read again and again: the committed losses over eight epochs, beside those of new text."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from benchmarks.harness import ROOT
from benchmarks.lessons.repetition import EPOCHS, SEEDS

TABLE = ROOT / "benchmarks" / "results" / "repetition.csv"


def losses(text: str) -> np.ndarray:
    """(seeds, epochs)"""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["text"] == text]
    found = [[row for row in rows if row["seed"] == str(seed)] for seed in range(SEEDS)]
    assert all([int(row["epoch"]) for row in each] == list(range(1, EPOCHS + 1)) for each in found)
    return np.array([[float(row["nats"]) for row in each] for each in found])


@pytest.mark.requirement("R-445")
def test_a_text_teaches_less_each_time_it_is_read() -> None:
    repeated, new = losses("repeated").mean(0), losses("new").mean(0)
    gains = -np.diff(repeated)
    assert gains[0] > 2 * gains[-1] > 0  # the loss falls, and ever less
    behind = repeated - new
    assert behind[-1] > 0 and behind[-1] > behind[1]  # the gap to new text grows
    error = losses("repeated")[:, -1].std(ddof=1) / np.sqrt(SEEDS)
    assert behind[-1] > 2 * error
