"""How long a step takes here: measured on two shallow models, extrapolated to the depth that is wanted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.machine import check_memory, keep_freed_memory, one_blas_thread
from chainrule.models import Compiled, LanguageModel, Model
from chainrule.models.microbatch import Batch as Microbatch
from chainrule.optim import AdamW, clip_factor, global_norm
from chainrule.random import generator, seeded
from chainrule.trace.count import Batch

PATIENCE = 1.0  # seconds for each of the two models
REPLAYED = 4  # the first step that is a replay alone


def step_seconds(model: Model, batch: Batch) -> float:
    """Seconds of a training step of a model of this kind and size; this one may be abstract.

    All blocks cost the same, so models of one block and of two tell what any number of them takes.
    """
    kind, config = type(model), model.config
    if not issubclass(kind, LanguageModel):
        raise ConfigError(f"count: {kind.__name__} cannot be measured (must be a language model)")
    if not hasattr(config, "n_layer"):
        return _seconds(kind, config, batch)
    one, two = (_seconds(kind, replace(config, n_layer=n), batch) for n in (1, 2))
    return one + (config.n_layer - 1) * max(two - one, 0.0)


def _seconds(kind: type[LanguageModel], config: Any, batch: Batch) -> float:
    """Of the fastest step within our patience; other programs can only make a step slower."""
    check_memory(kind.n_params(config))
    ids = generator("speed").integers(config.vocab_size, size=(batch.rows, batch.tokens + 1))
    times: list[float] = []
    keep_freed_memory()
    with seeded(0), one_blas_thread():
        model = kind(config)
        compiled, optimizer = Compiled(model), AdamW(model.parameters(), 1e-4)
        first = _timed(compiled, optimizer, ids)  # it also fetches its memory
        least = REPLAYED - 1 if first < PATIENCE else 1  # of a long step Python is a small part
        while len(times) < least or sum(times) < PATIENCE:
            times.append(_timed(compiled, optimizer, ids))
    return min(times)


def _timed(compiled: Compiled, optimizer: AdamW, ids: Array) -> float:
    """Seconds of a step."""
    began = time.perf_counter()
    with compiled.model.parameters().replaced():
        compiled.backward(Microbatch(ids[:, :-1], ids[:, 1:]))
    optimizer.step(scale=clip_factor(global_norm(optimizer.params), 1.0))
    return time.perf_counter() - began
