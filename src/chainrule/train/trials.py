"""Two trials on a copy of the model: can it overfit one batch, and how large may the learning rate be?

A model that cannot bring the loss of a single small batch near 0 will not learn a text either: something between the
data, the forward pass and the gradient is broken.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from chainrule import random
from chainrule.autograd.types import Array
from chainrule.data import BatchSource
from chainrule.doctor import Code, Finding, limits
from chainrule.doctor.messages import finding
from chainrule.models import IGNORE
from chainrule.models.microbatch import take
from chainrule.optim import EarlyStopping
from chainrule.optim.schedules import after_warmup, constant
from chainrule.optim.search import Choice, Sweep, choose, sweep
from chainrule.train.trainer import Trainer

ROWS = 4  # of the batch to overfit
STEPS = 1000  # at most
PATIENCE = 200  # steps without a lower loss, after which there will be none
RATES = (1e-5, 1.0)
COUNT = 100  # of rates that are tried
RISE = 0.1  # of what the loss had fallen, after which the rates are too high
BELOW = 10  # one step bears a rate about ten times as high as many steps do
WINDOW = 5  # losses that `choose` averages

Progress = Callable[[str], None]


class OneBatch(BatchSource):
    """The same few rows at every step."""

    def __init__(self, inputs: Any, targets: Array) -> None:
        self.inputs, self.targets = take(inputs, slice(0, ROWS)), targets[:ROWS]

    @property
    def tokens(self) -> int:
        return int(np.count_nonzero(self.targets != IGNORE))

    def batch(self, step: int) -> tuple[Any, Array]:
        return self.inputs, self.targets


def overfit(trainer: Trainer, *, steps: int = STEPS, said: Progress = lambda text: None) -> Finding:
    """Overfit one small batch: train a copy of the model on it, without dropout.

    The rate rises as in the training and then stays: without the warm-up some models never start.
    """
    batch = OneBatch(*trainer.batches.batch(0))
    copied = _copy(trainer, batch, dropout=0.0, weight_decay=0.0)
    floor = left_open(*batch.batch(0), context=getattr(trainer.model.config, "block_size", None))
    first = last = _loss(copied, batch.batch(0))
    goal = floor + limits.OVERFIT_BATCH * (first - floor)
    lr = trainer.config.lr
    rate = after_warmup(constant(lr), trainer.config.warmup, lr)
    done, patience = 0, EarlyStopping(PATIENCE + trainer.config.warmup)
    with random.seeded(trainer.config.seed):
        while done < steps and last > goal and not patience(done, last):
            last = copied.update(rate(done))[0]  # before the step: the next one sees the rest
            done += 1
            said(f"step {done} of {steps}, loss {last:.3f}")
    code = Code.ONE_BATCH_OK if last <= goal else Code.ONE_BATCH_FAILS
    leave = f" (their contexts leave {floor:.3f} open)" if floor > 0.005 else ""
    seen = {"first": first, "last": last, "steps": done, "rows": len(batch.targets), "lr": trainer.config.lr}
    return finding(code, **seen, floor=leave)


def left_open(inputs: Any, targets: Array, context: int | None) -> float:
    """Nats that no model can save: the same tokens, up to `context` of them, followed by others in the batch."""
    if not isinstance(inputs, np.ndarray) or inputs.shape != targets.shape:
        return 0.0
    following: dict[bytes, Counter[int]] = defaultdict(Counter)
    for row, wanted in zip(inputs, targets, strict=True):
        for t, target in enumerate(wanted.tolist()):
            if target != IGNORE:
                since = max(0, t + 1 - (context or t + 1))
                following[row[since : t + 1].tobytes()][target] += 1
    nats = sum(n * math.log(c.total() / n) for c in following.values() for n in c.values())
    return nats / max(1, sum(c.total() for c in following.values()))


class Rates(NamedTuple):
    """What the learning-rate finder saw, and the rate it would take."""

    seen: Sweep
    choice: Choice
    advised: float


def find_rate(trainer: Trainer, *, count: int = COUNT, said: Progress = lambda text: None) -> Rates:
    """One step at each of `count` rising rates, on a copy of the model and the batches of the training."""
    copied = _copy(trainer, trainer.batches)

    def step(rate: float) -> float:
        batch = copied.batches.batch(copied.steps)
        before, _ = copied.update(rate)
        said(f"rate {rate:.2g}, loss {before:.3f}")
        return _loss(copied, batch) if math.isfinite(before) else math.nan

    with random.seeded(trainer.config.seed):
        start = _loss(copied, copied.batches.batch(0))
        seen = sweep(step, start, low=RATES[0], high=RATES[1], count=count)
    choice = choose(_before_it_bursts(seen), window=WINDOW)
    return Rates(seen, choice, float(f"{choice.best / BELOW:.0e}"))  # more digits would pretend to know more


def _before_it_bursts(seen: Sweep) -> Sweep:
    """Up to where the loss rises again. Beyond it may be flat too, at what a model without memory of its text knows."""
    smoothed = choose(seen, window=WINDOW).smoothed
    lowest = int(smoothed.argmin())
    risen = smoothed[lowest] + RISE * (seen.start - smoothed[lowest])
    after = np.flatnonzero(smoothed[lowest:] > risen)
    end = lowest + int(after[0]) if len(after) else len(smoothed)
    end = max(end, min(WINDOW, len(smoothed)))
    return Sweep(seen.rates[:end], seen.losses[:end], seen.start)


def _copy(trainer: Trainer, batches: Any, *, dropout: float | None = None, **options: Any) -> Trainer:
    """A trainer of its own for a copy of the model, with another dropout rate if it has dropout.

    Steps that are not finite are left out.
    """
    config, model = replace(trainer.config, on_nan="skip", ema=0.0, patience=0, **options), trainer.model
    if dropout is None or not (is_dataclass(model.config) and hasattr(model.config, "dropout")):
        copied = copy.deepcopy(model)
    else:
        copied = type(model)(replace(model.config, dropout=dropout))  # type: ignore[type-var]
        copied.load(model.state())
    return Trainer(copied, batches, [], config)


def _loss(trainer: Trainer, batch: tuple[Any, Array]) -> float:
    trainer.model.eval()
    with np.errstate(all="ignore"):
        return trainer.model.mean_loss([batch])
