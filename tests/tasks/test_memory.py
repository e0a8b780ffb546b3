"""What a training step takes, counted before it is made, beside what it takes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import chainrule as cr
from chainrule.errors import ChainruleWarning
from chainrule.tasks import memory
from chainrule.train import TrainConfig

CONFIG: Any = cr.models.GPTConfig(n_layer=2, n_head=2, n_embd=32, block_size=512, vocab_size=100)
TRAINING = TrainConfig(batch_size=4)


def test_windows_that_are_made_shorter_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = memory.step_bytes(CONFIG, TRAINING, 300)
    monkeypatch.setattr(memory, "memory", lambda: 2 * needed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memory.longest_window(CONFIG, TRAINING, 300) == 300
    monkeypatch.setattr(memory, "memory", lambda: 2 * needed - 2)
    with pytest.warns(ChainruleWarning, match="rows of 150 tokens instead of 300: longer ones would take more"):
        assert memory.longest_window(CONFIG, TRAINING, 300) == 150
    with pytest.warns(ChainruleWarning, match="rows of 256 tokens instead of 512"):
        assert memory.longest_window(CONFIG, TRAINING, 1000) == 256  # the context is the most
