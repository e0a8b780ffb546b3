"""`chainrule figures`"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from chainrule.cli.plots import FIGURES
from chainrule.cli.plots.canvas import save
from chainrule.errors import ConfigError


@dataclass(frozen=True)
class Command:
    """Draw figures of the lessons by name, or all of them; without names, list them.

    Example: chainrule figures histograms gradient-map --out figures
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = ()
    """Which ones, or `all`."""
    out: Path = Path("figures")
    """Directory for the files."""

    def run(self) -> None:
        if not self.names:
            width = max(map(len, FIGURES))
            for name, (_, _, about) in FIGURES.items():
                print(f"{name:<{width}}  {about}")
            return
        names = tuple(FIGURES) if self.names == ("all",) else self.names
        for name in names:
            if name not in FIGURES:
                near = difflib.get_close_matches(name, FIGURES, n=1) or ["chainrule figures"]
                raise ConfigError(f"figures: {name!r}: no such figure (did you mean {near[0]}?)")
        for name in names:
            print(draw(name, self.out))


def draw(name: str, folder: Path) -> Path:
    """Draw one figure into `folder`: .png, or .svg or .txt for text."""
    module, function, _ = FIGURES[name]
    drawn = getattr(importlib.import_module(f"chainrule.cli.plots.{module}"), function)()
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(drawn, str):
        path = folder / f"{name}.{'svg' if drawn.startswith('<svg') else 'txt'}"
        path.write_text(drawn, encoding="utf-8")
    else:
        path = folder / f"{name}.png"
        save(drawn, path)
    return path
