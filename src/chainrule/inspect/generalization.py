"""The loss where it is not trained on: text not seen before, and text the model has written itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError
from chainrule.inspect.probe import untouched
from chainrule.models import IGNORE, Model
from chainrule.random import generator

Batch = tuple[Array, Array]

# -- two splits side by side -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitLosses:
    """Mean losses of several batches of each split, in evaluation mode."""

    train: float
    validation: float
    batches: int
    of: str = ""
    """What the validation loss is of, in words, if it is of more than these batches."""


def split_losses(model: Model, train: Any, validation: Any, batches: int = 8) -> SplitLosses:
    """Training and validation loss side by side, each the mean of `batches` batches; changes nothing.

    A split is an object with `.batch(step)`, or an iterable of (inputs, targets).
    """
    with untouched(model):
        model.eval()
        seen, unseen = (model.mean_loss(_take(split, batches)) for split in (train, validation))
    return SplitLosses(seen, unseen, batches)


def _take(split: Any, count: int) -> list[Batch]:
    if count < 1:
        raise ConfigError(f"split_losses: batches is {count} (must be at least 1)")
    found = map(split.batch, range(count)) if hasattr(split, "batch") else islice(iter(split), count)
    taken = list(found)
    if len(taken) < count:
        raise DataError(f"split_losses: {len(taken)} batches in a split (must be at least {count})")
    return taken


# -- the model on its own text -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exposure:
    """Mean losses in nats over the same positions, of a model that reads what was written and what it wrote."""

    teacher_forced: float
    """Of the true token after the true text, as in training."""
    own_prefix: float
    """Of the true token, after `given` true tokens and then text of the model's own."""
    own_text: float
    """Of the tokens it has written itself: how sure it is of what it says."""

    @property
    def gap(self) -> float:
        return self.own_prefix - self.teacher_forced


def exposure(model: Model, batch: Batch, given: int, seed: int = 0) -> Exposure:
    """How training on true text differs from writing: `given` true tokens, then the model's own."""
    inputs, targets = (np.asarray(a) for a in batch)
    T = inputs.shape[1]
    if not 1 <= given < T:
        raise ConfigError(f"exposure: given is {given}, the text has {T} tokens (must be from 1 to {T - 1})")
    rng = generator("exposure", seed=seed)
    with untouched(model), no_grad():
        model.eval()
        forced = _nll(model, inputs, targets)
        own = inputs.copy()
        drawn = np.full_like(targets, IGNORE)
        for t in range(given - 1, T):
            drawn[:, t] = _draw(model(own[:, : t + 1]).numpy()[:, -1], rng)
            if t + 1 < T:
                own[:, t + 1] = drawn[:, t]
        alone = _nll(model, own, targets)
        said = _nll(model, own, drawn)
    # From `given` on: there the texts that are read begin to differ.
    where = (slice(None), slice(given, None))
    counted = targets[where] != IGNORE
    means = (float(losses[where][counted].mean()) for losses in (forced, alone, said))
    return Exposure(*means)


def _nll(model: Model, ids: Array, targets: Array) -> Array:
    """(B, T), zero where the target does not count"""
    losses = ops.cross_entropy(model(ids), targets=targets, ignore_index=IGNORE, reduction="none")
    return np.asarray(losses.numpy())


def _draw(logits: Array, rng: np.random.Generator) -> Array:
    """One token of each row of logits (B, V): the largest of logits plus Gumbel noise is a draw of softmax."""
    return np.asarray((logits + rng.gumbel(size=logits.shape)).argmax(axis=-1))
