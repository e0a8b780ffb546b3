"""How training goes: the loss against the learning rate, and the loss when the rate drops near the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.autograd import no_grad
from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, canvas
from chainrule.data import Batches, load
from chainrule.models import MLPLM, MLPConfig
from chainrule.optim import SGD, Choice, Sweep, choose, step_decay, sweep
from chainrule.text import CharTokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 400
RATE = 0.5  # the full rate of `rate_decay`


class Lesson:
    """An MLP on a little prose, one small batch at a time by plain SGD, judged on a fixed part of it."""

    def __init__(self) -> None:
        text = load("pydoc").text[:20_000]
        tokenizer = CharTokenizer.train(text)
        ids = tokenizer.encode(text)
        with random.seeded(0):
            config = MLPConfig(block_size=3, n_embd=8, n_hidden=32, vocab_size=tokenizer.vocab_size)
            self.model = MLPLM(config)
        self.batches = Batches(ids, batch_size=4, block_size=16)
        self.exam = Batches(ids, batch_size=64, block_size=16, seed=1).batch(0)
        self.optimiser = SGD(self.model.parameters(), 0.0)

    def loss(self) -> float:
        with no_grad():
            return self.model.loss(*self.exam).item()

    def step(self, rate: float) -> float:
        """The loss on the exam after one more step."""
        self.optimiser.zero_grad()
        self.model.loss(*self.batches.batch(self.optimiser.steps)).backward()
        self.optimiser.step(rate)
        return self.loss()


def rate_search() -> Figure:
    """One step at each of a hundred rates, and where the curve is flat and low."""
    lesson = Lesson()
    seen = sweep(lesson.step, lesson.loss(), low=1e-3, high=10.0)
    return draw_sweep(seen, choose(seen))


def draw_sweep(seen: Sweep, choice: Choice) -> Figure:
    """The loss after the step at each rate, smoothed too, with the chosen range marked."""
    figure, ax = canvas(size=(8, 4.5))
    ax.plot(seen.rates, seen.losses, color=GOOD, alpha=0.3, linewidth=0.8)
    ax.plot(seen.rates, choice.smoothed, color=GOOD, label="loss, smoothed")
    ax.axhline(seen.start, color=FAINT, linestyle=":", label="before the first step")
    ax.axvspan(choice.low, choice.high, color=BAD, alpha=0.2, label=f"{choice.low:.2g} to {choice.high:.2g}")
    ax.axvline(choice.best, color=BAD, label=f"lowest loss at {choice.best:.2g}")
    ax.set(xscale="log", xlabel="learning rate", ylabel="loss (nats per token)")
    ax.set_ylim(top=1.3 * seen.start)  # how far it blows up does not matter
    ax.legend(frameon=False)
    return figure


def rate_decay() -> Figure:
    """A run whose rate is divided by ten when nine tenths of the steps are done."""
    lesson, rate = Lesson(), step_decay(RATE, STEPS)
    return draw_decay([lesson.step(rate(step)) for step in range(STEPS)], drop=round(0.9 * STEPS))


def draw_decay(losses: npt.ArrayLike, drop: int) -> Figure:
    """The loss after each step, in another colour after the drop."""
    curve: npt.NDArray[Any] = np.asarray(losses, float)
    figure, ax = canvas(size=(8, 4.5))
    ax.plot(np.arange(drop), curve[:drop], color=GOOD, linewidth=0.8, label="full rate")
    ax.plot(np.arange(drop, len(curve)), curve[drop:], color=BAD, linewidth=1.2, label="a tenth of it")
    ax.set(xlabel="step", ylabel="loss (nats per token)")
    ax.legend(frameon=False)
    return figure
