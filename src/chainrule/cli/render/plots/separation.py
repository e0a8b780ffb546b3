"""What a line cannot separate, and what a network makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chainrule import ops, random
from chainrule.autograd import no_grad
from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, canvas
from chainrule.nn import MLP
from chainrule.optim import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]

XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
LABELS = np.array([0, 1, 1, 0])


def xor() -> Figure:
    """Left, the best of all lines; right, the boundary of a network with one hidden layer."""
    figure, axes = canvas(1, 2, size=(8, 4.2), sharex=True, sharey=True)
    direction, offset, right = best_line(XOR, LABELS)
    network = trained(XOR, LABELS)
    x = np.linspace(-0.6, 1.6, 200, dtype=np.float32)
    grid = np.stack(np.meshgrid(x, x), axis=-1)  # (200, 200, 2)
    scores = network(grid)
    share = ((network(XOR) > 0) == LABELS).mean()
    axes[0].contour(x, x, grid @ direction - offset, levels=[0], colors=INK)
    axes[1].contour(x, x, scores, levels=[0], colors=INK)
    axes[0].set_title(f"best line: {right:.0%}", fontsize=11)
    axes[1].set_title(f"network: {share:.0%}", fontsize=11)
    for ax in axes:
        ax.scatter(*XOR.T, c=[(GOOD, BAD)[label] for label in LABELS], s=90, zorder=3)
        ax.set(aspect="equal", xlabel="x1", ylabel="x2")
    return figure


def best_line(points: Array, labels: Array) -> tuple[Array, float, float]:
    """A line w · x = b with the largest share of labels right, over a grid of directions and offsets: (w, b, share)"""
    angles = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)])  # (2, angles)
    offsets = np.linspace(-2, 2, 161)
    heights = (points @ directions)[:, :, None] - offsets  # (points, angles, offsets)
    right = ((heights > 0) == (labels == 1)[:, None, None]).mean(axis=0)
    clear = np.abs(heights).min(axis=0)  # of equally good lines the one farthest from every point
    i, j = np.unravel_index(np.where(right == right.max(), clear, -1).argmax(), right.shape)
    return directions[:, i], float(offsets[j]), float(right[i, j])


def trained(points: Array, labels: Array) -> Any:
    """A function points (..., 2) -> score (...), above 0 for label 1: a network fitted to the labels."""
    with random.seeded(1):
        net = MLP([2, 8, 2], "tanh")
    optimiser = Adam(net.parameters(), 0.05)
    for _ in range(300):
        optimiser.zero_grad()
        ops.cross_entropy(net(points), targets=labels).backward()
        optimiser.step()

    def score(x: Array) -> Array:
        with no_grad():
            logits: Array = net(x).numpy()
        return logits[..., 1] - logits[..., 0]

    return score


DEFECTS = np.array([[1, 1], [1.6, 1.6], [2.2, 2.2]])  # (size, weight) of parts: as heavy as they are large
SOUND = np.array([[2.5, 1], [3, 0.8], [1, 2.6], [0.8, 2.2]])  # light or heavy for their size
W1, B1 = np.array([[1, 0], [0, 1], [-0.5, 0.5]]), np.array([0, 0, 1.5])
W2 = np.array([[0.3, 0.2, 0.1], [0.1, 0.1, 0.8]])
THRESHOLD = 1.1


def features(parts: Array) -> Array:
    """parts (n, 2) -> the two features of the worked feed-forward network (n, 2)"""
    return np.maximum(parts @ W1.T + B1, 0) @ W2.T


def feature_space() -> Figure:
    """Parts by size and weight; by how far their density is from 1; and two of them in the network's features."""
    figure, axes = canvas(1, 3, size=(12, 4))
    for parts, colour, name in ((DEFECTS, BAD, "defective"), (SOUND, GOOD, "sound")):
        size, weight = parts.T
        axes[0].scatter(size, weight, color=colour, s=60, label=name)
        axes[1].scatter(size, np.abs(weight / size - 1), color=colour, s=60)
        axes[2].scatter(*features(parts[:1]).T, color=colour, s=60)
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
