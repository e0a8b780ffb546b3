"""How long a step takes here: measured on two shallow models, reckoned for the depth that is wanted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.machine import check_memory, keep_freed_memory, one_blas_thread
from chainrule.models import FAMILIES, LanguageModel
from chainrule.optim import AdamW, clip_global_norm
from chainrule.random import generator, seeded
from chainrule.trace.count import Batch

PATIENCE = 1.0  # seconds for each of the two models


def step_seconds(config: Any, batch: Batch) -> float:
    """Seconds of a training step of the model that `config` stands for.

    All blocks cost the same, so models of one block and of two tell what any number of them takes.
    """
    one, two = (_seconds(replace(config, n_layer=n), batch) for n in (1, 2))
    return one + (config.n_layer - 1) * max(two - one, 0.0)


def _seconds(config: Any, batch: Batch) -> float:
    """Of the fastest step within our patience; other programs can only make a step slower."""
    check_memory(config.n_params)
    ids = generator("speed").integers(config.vocab_size, size=(batch.rows, batch.tokens + 1))
    times: list[float] = []
    keep_freed_memory()
    with seeded(0), one_blas_thread():
        model = _model(config)
        optimizer = AdamW(model.parameters(), 1e-4)
        _step(model, optimizer, ids)  # the first one also fetches its memory
        while not times or sum(times) < PATIENCE:
            began = time.perf_counter()
            _step(model, optimizer, ids)
            times.append(time.perf_counter() - began)
    return min(times)


def _step(model: Any, optimizer: AdamW, ids: Array) -> None:
    optimizer.zero_grad()
    model.loss(ids[:, :-1], ids[:, 1:]).backward()
    clip_global_norm(optimizer.params, 1.0)
    optimizer.step()


def _model(config: Any) -> Any:
    for family in FAMILIES.values():
        if family.config is type(config) and issubclass(family.model, LanguageModel):
            return family.model(config)
    raise ConfigError(f"count: {type(config).__name__} cannot be measured (must be of a language model)")
