"""What the learning rate does: on θ², in a narrow valley, and to the loss of a small training, one step at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.autograd import Param, Parameters, no_grad
from chainrule.data import Batches, load
from chainrule.models import MLPLM, MLPConfig
from chainrule.optim import SGD, AdaGrad, Adam, Momentum, Optimizer, RMSprop, Sweep, step_decay, sweep
from chainrule.text import CharTokenizer

STEPS = 400
RATE = 0.5  # the full rate of `decayed`


class Lesson:
    """An MLP on a little prose, one small batch at a time by plain SGD, evaluated on a fixed batch."""

    def __init__(self) -> None:
        text = load("pydoc").text[:20_000]
        tokenizer = CharTokenizer.train(text)
        ids = tokenizer.encode(text)
        with random.seeded(0):
            config = MLPConfig(block_size=3, n_embd=8, n_hidden=32, vocab_size=tokenizer.vocab_size)
            self.model = MLPLM(config)
        self.batches = Batches(ids, batch_size=4, block_size=16)
        self.eval_batch = Batches(ids, batch_size=64, block_size=16, seed=1).batch(0)
        self.optimizer = SGD(self.model.parameters(), 0.0)

    def loss(self) -> float:
        with no_grad():
            return self.model.loss(*self.eval_batch).item()

    def step(self, rate: float) -> float:
        """The loss on the evaluation batch after one more step."""
        self.optimizer.zero_grad()
        self.model.loss(*self.batches.batch(self.optimizer.steps)).backward()
        self.optimizer.step(rate)
        return self.loss()


def rates() -> Sweep:
    """One step at each of a hundred rising rates."""
    lesson = Lesson()
    return sweep(lesson.step, lesson.loss(), low=1e-3, high=10.0)


def decayed() -> tuple[list[float], int]:
    """The losses of a run whose rate is divided by ten after nine tenths of the steps, and the step of the drop."""
    lesson, rate = Lesson(), step_decay(RATE, STEPS)
    return [lesson.step(rate(step)) for step in range(STEPS)], round(0.9 * STEPS)


def descend(rate: float, steps: int) -> npt.NDArray[np.float64]:
    """θ after 0, 1, ... steps of gradient descent on θ² from 1: (steps + 1,)"""
    theta = Param(np.ones(1), "theta", dtype=np.float64)
    optimizer = SGD(Parameters([("theta", theta)]), rate)
    path = [1.0]
    for _ in range(steps):
        optimizer.zero_grad()
        (theta * theta).sum().backward()
        optimizer.step()
        path.append(float(theta.array[0]))
    return np.array(path)


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "SGD": SGD, "momentum": Momentum, "AdaGrad": AdaGrad, "RMSprop": RMSprop, "Adam": Adam
}  # fmt: skip
STEEP, START = 20.0, (-4.0, 1.0)


def cross_valley(name: str, rate: float, steps: int) -> npt.NDArray[np.float64]:
    """Where an optimizer goes on (x² + 20 y²)/2, a valley twenty times steeper across than along: (steps + 1, 2)"""
    place = Param(np.array(START), "place", dtype=np.float64)
    make: Any = OPTIMIZERS[name]
    optimizer = make(Parameters([("place", place)]), rate)
    path = [np.array(START)]
    for _ in range(steps):
        optimizer.zero_grad()
        (place * place * np.array([0.5, STEEP / 2])).sum().backward()
        optimizer.step()
        path.append(np.array(place.array))
    return np.array(path)
