"""An empty figure, if matplotlib is there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from chainrule.errors import ConfigError, DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new(width: float, height: float) -> Figure:
    """A figure of so many inches that is drawn to a file, never to a screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("figure: matplotlib is not installed (pip install 'chainrule[plots]')") from error
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def save(figure: Figure, path: Path) -> None:
    """Write the figure, its folder too if that is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a script the font lacks is drawn as boxes
            figure.savefig(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from error


def visible(token: str) -> str:
    """A token as a label: white space gets a sign one can see."""
    return {" ": "␣", "\n": "↵", "\t": "⇥"}.get(token, token)
