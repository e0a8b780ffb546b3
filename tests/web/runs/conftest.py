"""Small runs that were really trained, once for all tests of a process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import chainrule as cr

TEXT = "the quick brown fox jumps over the lazy dog and runs away from it.\n" * 60


def trained(folder: Path, **settings: float) -> Path:
    """A GPT after a dozen steps, with evaluations, samples and looks inside."""
    text = folder.parent / "fox.txt"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(TEXT, encoding="utf-8")
    config = cr.train.TrainConfig(
        max_steps=12, batch_size=4, eval_every=4, sample_every=4, watch_every=4, warmup=2, **settings
    )
    run = cr.runs.Run.new(folder, str(text), config, n_layer=1, n_head=2, n_embd=16, block_size=16)
    run.train()
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    trained(folder / "one", lr=0.01)
    trained(folder / "group" / "two", lr=0.02)
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of the runs in the directory of the Studio of this test."""
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"
