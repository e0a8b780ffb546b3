"""A small model that has learned, and preferences for short answers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.models import model
from chainrule.runs import Run
from chainrule.train import TrainConfig

WORDS = ["red", "green", "blue", "cat", "dog", "sun", "moon"]
SETTINGS: dict[str, Any] = {
    "max_steps": 12, "batch_size": 8, "warmup": 2, "eval_every": 4, "save_every": 4, "lr": 1e-3, "keep": "last",
}  # fmt: skip


def preferences(folder: Path, count: int = 120) -> Path:
    """A file of prompts whose shorter answer is preferred."""
    draw, path = random.Random(3), folder / "preferences.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            answers = [" ".join(draw.choices(WORDS, k=k)) for k in (2, 4)]
            row = {"prompt": f"say {number}: ", "chosen": answers[0], "rejected": answers[1]}
            file.write(json.dumps(row) + "\n")
    return path


def base(**sizes: Any) -> tuple[Any, cr.text.Tokenizer]:
    """A GPT with random weights, the same each time, and a tokenizer of characters."""
    tokenizer = cr.text.CharTokenizer.train("0123456789: say" + "".join(WORDS))
    with cr.random.seeded(2):
        made = cr.models.make(
            "gpt", n_layer=1, n_head=2, n_embd=16, block_size=48, vocab_size=tokenizer.vocab_size, **sizes
        )
    return made, tokenizer


def aligned(
    folder: Path, name: str, family: str = "gpt", task: str = "", dropout: float = 0.0, **options: Any
) -> Run:
    """A run of alignment that has not begun."""
    start, tokenizer = base(dropout=dropout)
    settings = {key: options.pop(key) for key in list(options) if key in TrainConfig.__dataclass_fields__}
    config = TrainConfig(**SETTINGS | settings)
    data = options.pop("data", folder / "preferences.jsonl")
    if not data.exists():
        preferences(folder)
    return Run.new(folder / name, data, config, family, tokenizer, start, task=task, **options)


def counted_checkpoints(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The blocks that are recomputed from here on."""
    calls: list[Any] = []

    def checkpoint(block: Any, *inputs: Any) -> Any:
        calls.append(block)
        return cr.checkpoint(block, *inputs)

    monkeypatch.setattr(model, "checkpoint", checkpoint)
    return calls
