"""The loss curve as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError
from chainrule.train.log import read


def loss_curve(log: Path, png: Path, references: Mapping[str, float] | None = None) -> None:
    """Draw training and validation loss of `log` against the step, with horizontal lines for `references`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        missing = "loss curve: matplotlib is not installed (pip install 'chainrule[plots]')"
        raise ConfigError(missing) from error
    records = read(log)
    (x, losses), evaluations = _points(records, "loss"), _points(records, "validation")
    if not len(x):
        raise DataError(f"{log}: has no step to draw (must have at least one)")
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.subplots()
    axes.plot(x, losses, color="tab:blue", alpha=0.25, linewidth=0.8)
    axes.plot(x, smooth(losses), color="tab:blue", label="training")
    axes.plot(*evaluations, "o-", color="tab:orange", label="validation", clip_on=False, zorder=3)
    for name, value in (references or {}).items():
        axes.axhline(value, color="gray", linestyle=":", linewidth=1)
        axes.annotate(
            name, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="gray"
        )
    axes.set(xlabel="step", ylabel="loss (nats per token)", xlim=(0, x[-1]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(png)


def _points(records: list[dict[str, Any]], name: str) -> npt.NDArray[np.float64]:
    """The steps with a finite number of this name, and the numbers (2, n)."""
    found = [(r["step"], r[name]) for r in records if name in r]
    points = np.array(found, np.float64).reshape(-1, 2)  # null becomes NaN
    return points[np.isfinite(points).all(axis=1)].T


def smooth(losses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the losses around each step, over a twentieth of the run; less near the ends, where they change."""
    reach = np.minimum(np.arange(len(losses)), np.arange(len(losses))[::-1])
    reach = np.minimum(reach, len(losses) // 40)  # steps to each side
    total = np.concatenate([[0.0], np.cumsum(losses)])
    first = np.arange(len(losses)) - reach
    return (total[first + 2 * reach + 1] - total[first]) / (2 * reach + 1)
