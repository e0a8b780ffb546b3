"""The ladder of language models as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chainrule.cli.render.plots.canvas import FAINT, GOOD, INK, canvas
from chainrule.scaling.rungs import Rung

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def ladder(rungs: Sequence[Rung], text: str) -> Figure:
    """Bits per byte of every rung, from counting at the top to attention at the bottom, with intervals over seeds."""
    figure, axes = canvas(size=(7.5, 0.45 * len(rungs) + 1.2))
    means = [rung.mean for rung in rungs]
    places = range(len(rungs))
    colors = [GOOD if rung.updates else FAINT for rung in rungs]
    axes.barh(places, means, color=colors, height=0.62)
    axes.errorbar(
        means,
        places,
        xerr=[rung.interval or 0 for rung in rungs],
        fmt="none",
        ecolor=INK,
        capsize=3,
        linewidth=1,
    )
    for place, rung in zip(places, rungs, strict=True):
        end = rung.mean + (rung.interval or 0)
        axes.annotate(
            f"{rung.mean:.3f}",
            (end, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(list(places), [rung.title for rung in rungs])
    axes.invert_yaxis()
    axes.set(xlabel=f"bits per byte of unseen text ({text}); less is better", xlim=(0, 1.12 * max(means)))
    axes.legend(
        handles=[_patch(FAINT, "counted"), _patch(GOOD, "trained, with the 95 % interval over seeds")],
        frameon=False,
        fontsize=9,
        loc="lower right",
    )
    return figure


def _patch(color: str, label: str) -> object:
    from matplotlib.patches import Patch

    return Patch(color=color, label=label)
