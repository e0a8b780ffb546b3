"""Is there memory on this machine for a training step? Counted before the model is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chainrule.errors import ConfigError, Setting
from chainrule.machine import memory
from chainrule.models import model_class
from chainrule.models.model import Config
from chainrule.tasks.settings import Settings
from chainrule.trace.count import step_batch, training_memory

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


def step_bytes(sizes: Any, config: Settings, tokens: int) -> int:
    """What a step holds at least; of a family whose sizes do not say which it is, the batch alone."""
    batch = IDS * config.batch_size * tokens
    if batch > memory() or not isinstance(sizes, Config):
        return batch
    if config.recompute:  # one block at a time
        sizes = replace(sizes, n_layer=1)  # type: ignore[type-var]
    model = model_class(sizes).abstract(sizes)
    rows = -(-config.batch_size // config.accumulate)
    return batch + sum(training_memory(model, step_batch(model, rows, tokens)).values())
