"""Is there memory on this machine for a training step? Counted before the model is made."""

from __future__ import annotations

import threading
import warnings
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from chainrule.autograd.mode import switched
from chainrule.errors import ChainruleWarning, ConfigError, Setting
from chainrule.machine import memory, resident_memory
from chainrule.models import model_class
from chainrule.models.gradient import microbatch_count
from chainrule.models.model import Config, Model
from chainrule.models.tuning import Method
from chainrule.nn.init import abstract_parameters
from chainrule.trace.cost import FLOAT
from chainrule.trace.count import step_batch, step_memory

IDS = 16  # bytes: a token and the place it is taken from, in the whole batch
SAME = 1.02  # times as much memory is not worth a shorter window
SHORT = 64  # tokens: windows are not made shorter, and fewer of them must do
FEW_GIB = 10  # below which tenths count
FEW = 1 << 20  # tokens that are traced; from there on each row takes as much as the one before


def check_memory(sizes: Any, training: Any, window: int | None = None) -> None:
    """Refuse a batch of windows that needs more than all memory; `sizes` are those of a model."""
    needed, there = step_bytes(sizes, training, window), memory()
    if needed <= there:
        return
    digits = 1 if there < FEW_GIB * 2**30 else 0
    window = window or context_of(sizes)
    raise ConfigError(
        *(
            "train: ",
            Setting("batch_size"),
            f" is {training.batch_size}, ",
            Setting("block_size"),
            f" {window}: ",
        ),
        f"a step takes {needed / 2**30:,.{digits}f} GiB, this machine has {there / 2**30:.{digits}f} ",
        *("(", *_remedy(sizes, training, window, needed), ")"),
    )


def _remedy(sizes: Any, training: Any, window: int, needed: int) -> list[str]:
    """What to change for less memory: each setting that makes a difference, tried."""
    rows = -(-training.batch_size // 2)
    accumulate = training.accumulate and min(training.accumulate, rows)
    tried = {
        "batch_size": step_bytes(sizes, replace(training, batch_size=rows, accumulate=accumulate), window),
        "block_size": step_bytes(sizes, training, -(-window // 2)) if _counted.method is None else needed,
        "accumulate": step_bytes(sizes, replace(training, accumulate=training.batch_size), window),
    }
    said = [
        ["a larger " if name == "accumulate" else "a smaller ", Setting(name)]
        for name, less in tried.items()
        if SAME * less < needed
    ]
    if _counted.method is not None and not _counted.method.alone:
        said.append([Setting("method"), " lora"])
    if not said:
        return ["take a smaller model"]
    return [
        "take ",
        *(word for number, words in enumerate(said) for word in ([", or "] if number else []) + words),
    ]


def longest_window(config: Any, training: Any, wanted: int) -> int:
    """As many tokens as are wanted, or halved until a step of such windows leaves half of the memory to others.

    The context is the most there are. Windows that became shorter are told.
    """
    most = max(1, min(wanted, context_of(config)))  # a text may have no token
    needed = {most: step_bytes(config, training, most)}
    while needed[window := min(needed)] > memory() // 2 and window > SHORT:
        needed[window // 2] = step_bytes(config, training, window // 2)
    if memory() // 2 < needed[window] <= memory():  # of windows that take nearly the same the longest
        window = max(each for each in needed if needed[each] <= SAME * min(needed.values()))
    if window < most and needed[window] <= memory():  # or it is refused
        why = f"longer ones would take more than half of the memory, {memory() / 2**30:.1f} GiB"
        smaller = replace(training, batch_size=1, accumulate=None)
        helps = step_bytes(config, smaller, 2 * window) < needed[window]
        fix = " (a smaller batch leaves room for more)" if helps else ""
        said = f"rows of {window:,} tokens instead of {most:,}: {why}{fix}"
        warnings.warn(said, ChainruleWarning, stacklevel=2)
    return window


class _Counted(threading.local):
    method: Method | None = None


_counted = _Counted()


def counted_with(method: Method | None) -> AbstractContextManager[Any]:
    """In here a step is that of a model tuned by this method, of which less learns."""
    return switched(_counted, "method", method)


def context_of(config: Any) -> int:
    """Tokens in a row at most: a prefix or a soft prompt takes places of the context."""
    method = _counted.method
    return int(config.block_size if method is None else _abstract(config, method).context)


def _abstract(config: Config, method: Method | None) -> Model:
    """A model of this size, tuned by the method, whose parameters have shapes only."""
    with abstract_parameters():
        model = model_class(config)(config)
        return model if method is None else method.apply(model)


def whole_bytes(model: Model, training: Any, window: int | None, method: Method) -> int:
    """What this process will take at its highest if the model, which is in memory, is tuned by this method.

    A step of it, and what else is here already: the program, the tokenizer and the data.
    """
    with counted_with(method):
        step = step_bytes(model.config, training, window)
    return step + max(0, resident_memory() - FLOAT * model.count())


def step_bytes(config: Any, training: Any, window: int | None = None) -> int:
    """What a step holds at least: the batch alone if a row of it is too much, or the config does not say its family.

    Its rows have `window` tokens, or as many as the context.
    """
    tokens = window or config.block_size
    batch = IDS * training.batch_size * tokens
    if IDS * tokens > memory() or not isinstance(config, Config):
        return batch
    model = _abstract(config, _counted.method)
    if _counted.method is not None:
        tokens = min(tokens, model.context)  # a soft prompt takes the first places

    def held(rows: int) -> int:
        return step_memory(model, step_batch(model, rows, tokens), recompute=training.recompute)

    microbatches = training.accumulate or microbatch_count(
        model.microbatch_tokens, training.batch_size, tokens
    )
    rows, few = -(-training.batch_size // microbatches), max(1, FEW // tokens)
    if rows <= 2 * few:
        return batch + held(rows)
    return batch + held(few) + (rows - few) * (held(2 * few) - held(few)) // few
