"""What a line cannot separate, and what a network makes of it."""

from __future__ import annotations

import numpy as np

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas
from chainrule.lessons.separation import DEFECTS, LABELS, SOUND, THRESHOLD, XOR, best_line, features, trained


def xor() -> Figure:
    """Left, the best of all lines; right, the boundary of a network with one hidden layer."""
    figure, axes = canvas(1, 2, size=(8, 4.2), sharex=True, sharey=True)
    direction, offset, right = best_line(XOR, LABELS)
    network = trained(XOR, LABELS)
    x = np.linspace(-0.6, 1.6, 200, dtype=np.float32)
    grid = np.stack(np.meshgrid(x, x), axis=-1)  # (200, 200, 2)
    scores = network(grid)
    fraction = ((network(XOR) > 0) == LABELS).mean()
    axes[0].contour(x, x, grid @ direction - offset, levels=[0], colors=INK)
    axes[1].contour(x, x, scores, levels=[0], colors=INK)
    axes[0].set_title(f"best line: {right:.0%}", fontsize=11)
    axes[1].set_title(f"network: {fraction:.0%}", fontsize=11)
    for ax in axes:
        ax.scatter(*XOR.T, c=[(GOOD, BAD)[label] for label in LABELS], s=90, zorder=3)
        ax.set(aspect="equal", xlabel="x1", ylabel="x2")
    return figure


def feature_space() -> Figure:
    """Parts by size and weight; by how far their density is from 1; and two of them in the network's features."""
    figure, axes = canvas(1, 3, size=(12, 4))
    for parts, color, name in ((DEFECTS, BAD, "defective"), (SOUND, GOOD, "sound")):
        size, weight = parts.T
        axes[0].scatter(size, weight, color=color, s=60, label=name)
        axes[1].scatter(size, np.abs(weight / size - 1), color=color, s=60)
        axes[2].scatter(*features(parts[:1]).T, color=color, s=60)
        a, b = features(parts[:1])[0]
        axes[2].annotate(f"({a:g}, {b:.2f})", (a, b), (8, 4), textcoords="offset points", fontsize=9)
    axes[0].set(title="no line separates them", xlabel="size", ylabel="weight")
    axes[0].legend(frameon=False)
    axes[1].axhline(0.3, color=FAINT, linestyle="--")
    axes[1].set(title="one more feature, and a line does", xlabel="size", ylabel="|weight / size - 1|")
    axes[2].axhline(THRESHOLD, color=FAINT, linestyle="--")
    axes[2].set(
        title="(1, 1) and (2.5, 1) in features of an FFN", xlabel="feature A", ylabel="feature B",
        xlim=(0.4, 1.4), ylim=(0.7, 1.6),
    )  # fmt: skip
    return figure
