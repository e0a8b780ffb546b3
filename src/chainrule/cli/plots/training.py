"""How training goes: the loss against the learning rate, and the loss when the rate drops near the end.

R-487, R-488 (seed 002 Fig. 5, 6)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.cli.plots.canvas import canvas, save
from chainrule.errors import DataError
from chainrule.optim import Choice, Sweep

Array = npt.NDArray[Any]


def rate_sweep(seen: Sweep, choice: Choice, path: Path) -> Sweep:
    """The loss after one step at each rate, smoothed too, with the chosen range marked."""
    figure, axes = canvas(size=(8, 4.5))
    axes.plot(seen.rates, seen.losses, color="tab:blue", alpha=0.3, linewidth=0.8)
    axes.plot(seen.rates, choice.smoothed, color="tab:blue", label="loss, smoothed")
    axes.axhline(seen.start, color="grey", linestyle=":", linewidth=1, label="before the first step")
    axes.axvspan(choice.low, choice.high, color="tab:orange", alpha=0.3, label="chosen range")
    axes.axvline(choice.best, color="tab:orange", label="lowest loss")
    axes.set(xscale="log", xlabel="learning rate", ylabel="loss")
    _finish(axes)
    save(figure, path)
    return seen


class Decay(NamedTuple):
    """The spread of the loss in two tenths of a run."""

    before: float  # the tenth before the last
    after: float  # the last


def decayed(losses: npt.ArrayLike, path: Path, *, at: float = 0.9) -> Decay:
    """losses (steps,) of a run whose rate drops after the share `at` of its steps."""
    curve = np.asarray(losses, float)
    if curve.ndim != 1 or len(curve) < 20:
        raise DataError(f"decay curve: losses {curve.shape} (must be one row of at least 20)")
    drop, tenth = round(at * len(curve)), len(curve) // 10
    figure, axes = canvas(size=(8, 4.5))
    axes.plot(np.arange(drop), curve[:drop], color="tab:blue", linewidth=0.8, label="full rate")
    axes.plot(
        np.arange(drop, len(curve)), curve[drop:], color="tab:orange", linewidth=0.8, label="after the drop"
    )
    axes.set(xlabel="step", ylabel="loss")
    _finish(axes)
    save(figure, path)
    return Decay(float(curve[drop - tenth : drop].std()), float(curve[drop:].std()))


def _finish(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
