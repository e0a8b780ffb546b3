"""The loss curve as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError
from chainrule.train.log import read


def loss_curve(log: Path, png: Path, references: Mapping[str, float] | None = None) -> None:
    """Draw training and validation loss of `log` against the step, with horizontal lines for `references`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError(
            "loss curve: matplotlib is not installed (pip install 'chainrule[plots]')"
        ) from error
    records = read(log)
    steps = [(r["step"], r["loss"]) for r in records if "loss" in r]
    evaluations = [(r["step"], r["validation"]) for r in records if "validation" in r]
    if not steps:
        raise DataError(f"{log}: has no step to draw (must have at least one)")
    x, losses = np.array(steps).T
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.subplots()
    axes.plot(x, losses, color="tab:blue", alpha=0.25, linewidth=0.8)
    axes.plot(x, smooth(losses), color="tab:blue", label="training")
    axes.plot(*np.array(evaluations).T, "o-", color="tab:orange", label="validation", clip_on=False, zorder=3)
    for name, value in (references or {}).items():
        axes.axhline(value, color="grey", linestyle=":", linewidth=1)
        axes.annotate(
            name, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="grey"
        )
    axes.set(xlabel="step", ylabel="loss (nats per token)", xlim=(0, x[-1]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(png)


def smooth(losses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the losses around each step, over a twentieth of the run; less near the ends, where they change."""
    reach = np.minimum(np.arange(len(losses)), np.arange(len(losses))[::-1])
    reach = np.minimum(reach, len(losses) // 40)  # steps to each side
    total = np.concatenate([[0.0], np.cumsum(losses)])
    first = np.arange(len(losses)) - reach
    return (total[first + 2 * reach + 1] - total[first]) / (2 * reach + 1)
