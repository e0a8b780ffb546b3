"""The forecast of a budget: a law over measured runs, fitted again here, and its ranges on texts left out."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from chainrule.scaling.outlook import TABLE, Outlook, Run, law, outlook, read

UNSEEN = Path(__file__).parents[2] / "benchmarks" / "results" / "budget.csv"
PACKAGED = (files("chainrule.scaling") / TABLE).read_text(encoding="utf-8")
LAW = (24.5, 1.5, 26.0, 1.8, 0.9, 0.2)


def planted(texts: int, sooner: float, better: float, seed: int) -> list[Run]:
    """Runs of a law that is known, of texts that are learned sooner or better than others"""
    rng = np.random.default_rng(seed)
    runs = []
    for number in range(texts):
        q = rng.uniform(1.6, 2.6)
        counts = np.array([[rng.uniform(4.3, 5), rng.uniform(3.3, 4), q]])
        shift = rng.normal(0, sooner)
        for compute in (2.5e10, 1.2e11, 6e11, 2.4e12):
            bits = law(LAW, counts, np.array([compute * np.exp(shift)]))[0] * np.exp(rng.normal(0, better))
            runs.append(Run(f"text {number}", *counts[0].tolist(), compute, float(bits)))
    return runs


def covered(found: Outlook, runs: list[Run]) -> list[bool]:
    ranges = [found.range((run.single, run.pair, run.longest), run.compute) for run in runs]
    return [low <= run.bits <= high for (low, high), run in zip(ranges, runs, strict=True)]


def test_a_planted_law_is_found_again() -> None:
    found = Outlook.of(planted(30, 0.05, 0.01, seed=0))
    counts = (4.6, 3.6, 2.1)
    for compute in (2.5e10, 1.2e11, 6e11, 2.4e12):
        truth = law(LAW, np.array([counts]), np.array([compute]))[0]
        assert found.expected(counts, compute) == pytest.approx(truth, rel=0.02)
    assert 0.005 <= found.better < 0.03


def test_ranges_cover_new_texts_of_planted_laws() -> None:
    inside = []
    for seed in range(8):
        found = Outlook.of(planted(12, 0.25, 0.05, seed))
        inside += covered(found, planted(6, 0.25, 0.05, seed + 100))
    assert 0.9 <= np.mean(inside) <= 1


def test_more_compute_promises_less_and_far_away_less_surely() -> None:
    counts = (4.6, 3.6, 2.1)
    ranges = [outlook().range(counts, compute) for compute in (1e10, 1e11, 1e12, 1e13, 1e15)]
    assert ranges == sorted(ranges, reverse=True)
    width = [np.log(high / low) for low, high in ranges]
    assert width[-1] > width[2]
    low, high = outlook().range(counts, 3e11, pace=1.5)
    assert low < outlook().range(counts, 3e11)[0] and outlook().range(counts, 3e11)[1] < high


def test_ranges_hold_texts_that_were_left_out_of_the_fit() -> None:
    """Each text of the table, forecast from the others; its parts count as the same text."""
    runs = read(PACKAGED)
    texts = sorted({run.text.partition(":")[0] for run in runs})
    assert len(texts) >= 10 and len(runs) >= 30
    inside = []
    for text in texts:
        others = [run for run in runs if run.text.partition(":")[0] != text]
        inside += covered(Outlook.of(others), [run for run in runs if run not in others])
    assert np.mean(inside) >= 0.9


def test_ranges_hold_texts_that_were_never_used() -> None:
    """Runs of other texts, as `python -m benchmarks.lessons.budget test` has written them."""
    runs = read(UNSEEN.read_text(encoding="utf-8"))
    assert not {run.text for run in runs} & {run.text for run in read(PACKAGED)}
    assert len(runs) >= 10 and np.mean(covered(outlook(), runs)) >= 0.9


def test_every_row_of_the_tables_says_how_it_was_made() -> None:
    for text in (PACKAGED, UNSEEN.read_text(encoding="utf-8")):
        for row in csv.DictReader(text.splitlines()):
            assert (
                int(row["params"]) > 0 and float(row["cpu_seconds"]) > 0 and float(row["bits_per_byte"]) < 8
            )
