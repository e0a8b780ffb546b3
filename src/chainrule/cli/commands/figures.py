"""`chainrule figures`"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from chainrule.cli.args.options import Argument
from chainrule.cli.args.outputs import Folder
from chainrule.cli.render.plots import FIGURES
from chainrule.cli.render.plots.canvas import save
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.suggest import did_you_mean


@dataclass(frozen=True)
class Command:
    """Draw figures of the lessons by name, or all of them; without names, list them.

    Example: chainrule figures histograms gradient-map --out figures
    """

    names: Annotated[tuple[str, ...], Argument("NAME")] = ()
    """Figures to draw, or `all`."""
    out: Annotated[Path, Folder] = Path("figures")
    """Directory for the files."""

    def run(self) -> None:
        if not self.names:
            show({name: about for name, (_, about) in FIGURES.items()}, as_json=False)
            return
        names = tuple(FIGURES) if self.names == ("all",) else self.names
        for name in names:
            if name not in FIGURES:
                hint = did_you_mean(name, FIGURES) or "chainrule figures lists them"
                raise ConfigError(f"figures: {name!r}: no such figure ({hint})")
        for name in names:
            with Progress(f"drawing {name}"):
                path = draw(name, self.out)
            print(path)


def draw(name: str, folder: Path) -> Path:
    """Draw one figure into `folder`: .png, or .svg or .txt for text."""
    module, _, function = FIGURES[name][0].partition(".")
    drawn = getattr(importlib.import_module(f"chainrule.cli.render.plots.{module}"), function)()
    if isinstance(drawn, str):
        path = folder / f"{name}.{'svg' if drawn.startswith('<svg') else 'txt'}"
        write(path, drawn.encode())
    else:
        path = folder / f"{name}.png"
        save(drawn, path)
    return path
