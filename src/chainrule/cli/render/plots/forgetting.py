"""What tuning gains on the new task against what it loses on the old one."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas
from chainrule.lessons.forgetting import Outcome


def forgetting(outcomes: Sequence[Outcome], task: str, old: str) -> Figure:
    """A point for each way of tuning: to the right it has learned more, further up it has forgotten more."""
    figure, ax = canvas(size=(7.0, 4.6))
    for each in outcomes:
        color = BAD if each.name == "full" else GOOD
        ax.scatter(each.gain, each.rise, s=46, color=color, zorder=3)
        ax.annotate(
            each.name, (each.gain, each.rise), (7, 5), textcoords="offset points", fontsize=9, color=INK
        )
    ax.axhline(0, color=FAINT, linewidth=1, linestyle="--", zorder=1)
    ax.margins(0.16, 0.14)
    ax.set(
        xlabel=f"gain: how far the loss on {task} fell, in nats (more is better)",
        ylabel=f"rise of the loss on {old}, in nats\n(less is better)",
        title="What tuning learns and what it forgets",
    )
    return figure
