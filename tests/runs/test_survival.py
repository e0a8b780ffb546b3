"""Runs that are killed, over and over, at any moment: in the end nothing tells them from runs that were not."""

from __future__ import annotations

import random
import shutil
import zlib
from pathlib import Path

import pytest

from tests.runs.survivors import TRAINERS, in_a_process, new, outcome, write_data

KILLED = -9
MOMENTS = 40  # the farthest death from a start: two checkpoints and several steps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("survival")
    write_data(made)
    return made


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(folder: Path, trainer: str) -> None:
    whole = new(folder, trainer, f"{trainer}-whole")
    whole.train()
    draw = random.Random(zlib.crc32(trainer.encode()))
    deaths, killed = 0, folder / f"{trainer}-killed"
    while True:
        moments = draw.randrange(MOMENTS) if deaths < 3 else None
        code = in_a_process(folder, trainer, killed.name, moments)
        if code != KILLED:
            break
        deaths += 1
        if not any((killed / "checkpoints").glob("step_*")):  # before its first step: nothing is lost
            shutil.rmtree(killed)
    assert (code, deaths > 0) == (0, True)
    assert outcome(killed) == outcome(whole.folder)
