"""Small models of every family that is tuned, with inputs to compare them by."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr
from chainrule.autograd.types import Array

SIZES: dict[str, dict[str, Any]] = {
    "gpt": {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12},
    "llama": {"n_layer": 2, "n_head": 4, "n_kv_head": 2, "n_embd": 16, "n_hidden": 20, "block_size": 12},
    "neox": {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12, "rotary": 0.5},
    "bert-classifier": {
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "n_hidden": 20,
        "block_size": 12,
        "classes": 3,
    },
    "seq2seq": {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12},
    "t5": {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12},
}
LANGUAGE = ("gpt", "llama", "neox")
IDS = np.random.default_rng(5).integers(11, size=(2, 6))


def made(family: str, **sizes: Any) -> Any:
    """A model of a family whose parameters are all different from 0, in evaluation mode."""
    cr.seed(1)
    model = cr.models.make(family, **SIZES[family] | sizes, vocab_size=11)
    rng = np.random.default_rng(2)
    model.load({n: a + 0.05 * rng.normal(size=a.shape).astype(np.float32) for n, a in model.state().items()})
    return model.eval()


def inputs(family: str) -> Any:
    """A batch of a family, as its `loss` takes it."""
    if family in ("seq2seq", "t5"):
        return (IDS, np.ones(IDS.shape, bool), IDS), IDS
    if family == "bert-classifier":
        return (IDS, None, None), np.array([0, 2])
    return IDS, IDS[:, ::-1]


def outputs(model: Any, family: str) -> Array:
    """What a model says to the batch."""
    given, _ = inputs(family)
    with cr.no_grad():
        found = model(*given) if isinstance(given, tuple) else model(given)
    return np.asarray(found.numpy())


def descend(model: Any, family: str, steps: int = 3, lr: float = 0.05) -> list[float]:
    """The losses of a few steps on the batch; dropout is off."""
    optimizer = cr.optim.Adam(model.parameters(), lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(*inputs(family))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses
