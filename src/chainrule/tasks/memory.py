"""Is there room on this machine for a training step? By formula, before the model is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chainrule.errors import ConfigError, Setting
from chainrule.machine import memory
from chainrule.scaling import parts_of, step_batch, training_memory
from chainrule.scaling.architectures import BUILDERS
from chainrule.tasks.settings import Settings

IDS = 16  # bytes: a token and the place it is taken from, in the whole batch


def check_room(model: Any, config: Settings, tokens: int) -> None:
    """Refuse a batch of rows of `tokens` tokens that needs more than all memory; `model` is the config of one."""
    needed, there = step_bytes(model, config, tokens), memory()
    if needed > there:
        raise ConfigError(
            *("train: ", Setting("batch_size"), f" is {config.batch_size}, "),
            *(Setting("block_size"), f" {model.block_size}: a step takes "),
            f"{needed / 2**30:,.0f} GiB, this machine has {there / 2**30:.0f} (make one of them smaller, or accumulate "
            "larger)",
        )


def step_bytes(model: Any, config: Settings, tokens: int) -> int:
    """What a step holds at least: of families without a list of parts the batch alone."""
    batch = IDS * config.batch_size * tokens
    if type(model) not in BUILDERS:
        return batch
    if config.recompute:  # one block at a time
        model = replace(model, n_layer=1)
    parts = parts_of(model)
    rows = -(-config.batch_size // config.accumulate)
    return batch + sum(training_memory(parts, step_batch(parts, rows, tokens)).values())
