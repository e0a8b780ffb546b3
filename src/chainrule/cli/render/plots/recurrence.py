"""A recurrent network unrolled in time, and below each step the gradient that reaches it."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas
from chainrule.lessons.recurrence import STEPS, compared


def unrolled() -> Figure:
    """The same cell at every step; gradients of three networks on their way back from the last."""
    figure, (above, below) = canvas(2, 1, size=(9, 5.2), sharex=True, height_ratios=[1, 2])
    _cells(above)
    steps = np.arange(1, STEPS + 1)
    for color, (name, norms) in zip((BAD, GOOD, INK), compared().items(), strict=True):
        below.semilogy(steps, norms, "o-", color=color, markersize=4, label=name)
    below.axhline(1, color=FAINT, linestyle=":", linewidth=1)
    below.set(xlabel="step t", ylabel="‖∂L/∂s$_t$‖ / ‖∂L/∂s$_T$‖", xlim=(0.2, STEPS + 0.8))
    below.set_xticks(steps)
    below.legend(frameon=False, fontsize=9)
    return figure


def _cells(ax: Any) -> None:
    """Boxes for the steps 1 .. T, joined by the state, each with its input."""
    arrow = {"arrowstyle": "->", "color": INK, "linewidth": 1}
    for t in range(1, STEPS + 1):
        ax.text(
            t, 0, f"h$_{{{t}}}$", ha="center", va="center", fontsize=9, gid=f"cell {t}",
            bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": INK},
        )  # fmt: skip
        ax.text(t, -1.5, f"x$_{{{t}}}$", ha="center", va="center", fontsize=9, color=INK)
        ax.annotate("", (t, -0.5), (t, -1.2), arrowprops=arrow)
        ax.annotate("", (t - 0.3, 0), (t - 0.7, 0), arrowprops=arrow)
    ax.text(1, 1.1, "the same W$_x$, W$_h$, b at every step; the gradient comes from the right", fontsize=9)
    ax.set(ylim=(-1.9, 1.5))
    ax.axis("off")
