"""The ladder of language models as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.cli.render.plots.canvas import FAINT, GOOD, INK, Figure, canvas
from chainrule.scaling.rungs import Rung


def ladder(rungs: Sequence[Rung], text: str) -> Figure:
    """Bits per byte of every rung, from counting at the top to attention at the bottom, with intervals over seeds."""
    figure, ax = canvas(size=(7.5, 0.45 * len(rungs) + 1.2))
    from matplotlib.patches import Patch

    means, intervals = [rung.mean for rung in rungs], [rung.interval or 0 for rung in rungs]
    places = range(len(rungs))
    ax.barh(places, means, color=[GOOD if rung.updates else FAINT for rung in rungs], height=0.62)
    ax.errorbar(means, places, xerr=intervals, fmt="none", ecolor=INK, capsize=3, linewidth=1)
    for place, mean, interval in zip(places, means, intervals, strict=True):
        end = (mean + interval, place)
        ax.annotate(f"{mean:.3f}", end, (5, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(list(places), [rung.title for rung in rungs])
    ax.invert_yaxis()
    ax.set(xlabel=f"bits per byte of unseen text ({text}); less is better", xlim=(0, 1.12 * max(means)))
    kinds = ((FAINT, "counted"), (GOOD, "trained, with the 95 % interval over seeds"))
    handles = [Patch(color=color, label=label) for color, label in kinds]
    ax.legend(handles=handles, frameon=False, fontsize=9, loc="lower right")
    return figure
