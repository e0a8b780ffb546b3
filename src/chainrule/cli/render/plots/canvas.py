"""An empty figure in the style of all others."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.errors import ConfigError, DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure
else:
    Figure = Any  # matplotlib is imported when something is drawn

BAD, GOOD, INK, FAINT = "#c0392b", "#2471a3", "#2d3748", "#9aa5b1"


def canvas(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float], **shared: Any
) -> tuple[Figure, Any]:
    """A figure and its axes (one, a row, or a grid); `shared` goes to `subplots`, as in sharey=True."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("figures: matplotlib is not installed (pip install 'chainrule[plots]')") from error
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    axes = figure.subplots(rows, columns, **shared)
    for ax in axes.flat if rows * columns > 1 else [axes]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9)
    return figure, axes


def colors(n: int) -> list[Any]:
    """n colors from the first layer (dark) to the last (light)."""
    from matplotlib import colormaps

    return [colormaps["viridis"](0.9 * i / max(n - 1, 1)) for i in range(n)]


def save(figure: Figure, path: Path) -> None:
    """Write the figure, its folder too if that is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a script the font lacks is drawn as boxes
            figure.savefig(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from error
