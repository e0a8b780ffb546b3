"""What the training tests share: a small text, a small model, and reading of logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainrule.data import Corpus, load
from chainrule.runs import Run
from chainrule.train import TrainConfig
from chainrule.train.log import read

SIZE: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16, "dropout": 0.1}


def corpus(folder: Path) -> Corpus:
    """The first 20,000 characters of pydoc, as a file."""
    path = folder / "text.txt"
    path.write_text(load("pydoc").text[:20_000], encoding="utf-8")
    return load(path)


def new_run(folder: Path, name: str = "run", **settings: Any) -> Run:
    defaults = {"max_steps": 30, "batch_size": 4, "lr": 1e-2, "warmup": 3, "eval_every": 10, "save_every": 10}
    return Run.new(folder / name, corpus(folder), TrainConfig(**defaults | settings), **SIZE)


def losses(run: Run) -> list[tuple[int, float]]:
    return [(r["step"], r["loss"]) for r in read(run.files.log) if "loss" in r]


def validations(run: Run) -> list[tuple[int, float]]:
    return [(r["step"], r["validation"]) for r in read(run.files.log) if "validation" in r]
