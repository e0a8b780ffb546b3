"""How training goes: the loss against the learning rate, and the loss when the rate drops near the end."""

from __future__ import annotations

import numpy as np

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, Figure, canvas
from chainrule.lessons.learning_rate import decayed, rates
from chainrule.optim import choose


def rate_search() -> Figure:
    """The loss after one step at each of a hundred rates, smoothed too; where it is flat and low is marked."""
    seen = rates()
    choice = choose(seen)
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
    """The loss of a run whose rate is divided by ten when nine tenths of the steps are done."""
    losses, drop = decayed()
    figure, ax = canvas(size=(8, 4.5))
    ax.plot(np.arange(drop), losses[:drop], color=GOOD, linewidth=0.8, label="full rate")
    ax.plot(np.arange(drop, len(losses)), losses[drop:], color=BAD, linewidth=1.2, label="a tenth of it")
    ax.set(xlabel="step", ylabel="loss (nats per token)")
    ax.legend(frameon=False)
    return figure
