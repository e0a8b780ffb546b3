"""What follows what: the transition graph, the heat map, and a one-hot slice.

R-484, R-485, R-486 (seed 002 Fig. 2, 3, 4)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.cli.plots.canvas import canvas, save, visible

Array = npt.NDArray[Any]


class Edge(NamedTuple):
    """Token `source` is followed by `target` so many times; drawn between white (0) and black (1)."""

    source: str
    target: str
    times: int
    darkness: float


class Graph(NamedTuple):
    """What a transition graph shows."""

    vertices: list[str]
    edges: list[Edge]  # the darkest last, on top of the others


FAINTEST = 0.05  # the darkness of a pair that occurs once, or nearly so


def transition_graph(matrix: Array, tokens: Sequence[str], path: Path, *, most: int = 40) -> Graph:
    """matrix (V, V) of counts -> tokens on a circle, an arrow for each pair that occurs, darker if more often

    Of a large vocabulary only the `most` frequent tokens are drawn.
    """
    kept = _frequent(matrix, most)
    matrix = matrix[np.ix_(kept, kept)]
    pairs = np.argwhere(matrix)
    pairs = pairs[np.argsort(matrix[tuple(pairs.T)], kind="stable")]  # (edges, 2)
    times = matrix[tuple(pairs.T)]
    darkness = FAINTEST + (1 - FAINTEST) * times / times.max(initial=1)
    labels = [tokens[i] for i in kept]

    figure, axes = canvas(size=(8, 8))
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(kept)) / max(len(kept), 1)
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    loops = pairs[:, 0] == pairs[:, 1]
    _draw_loops(axes, places[pairs[loops, 0]], darkness[loops], min(0.09, 2.5 / max(len(kept), 1)))
    rims = np.array([0.05 if len(label) == 1 else 0.085 for label in labels])  # of the vertices, about
    i, j = pairs[~loops].T
    _draw_arrows(axes, places[i], places[j], rims[j], darkness[~loops])
    box = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": "tab:blue"}
    for (x, y), token in zip(places, labels, strict=True):
        axes.text(x, y, visible(token), ha="center", va="center", fontsize=11, zorder=3, bbox=box)
    axes.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    axes.set_axis_off()
    save(figure, path)
    edges = zip(pairs.tolist(), times.tolist(), darkness.tolist(), strict=True)
    return Graph(labels, [Edge(labels[a], labels[b], n, dark) for (a, b), n, dark in edges])


def _draw_loops(axes: Any, places: Array, darkness: Array, radius: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle

    circles = [Circle((x, y), radius) for x, y in (1 + radius) * places]
    axes.add_collection(PatchCollection(circles, facecolors="none", edgecolors=_greys(darkness)))


def _draw_arrows(axes: Any, starts: Array, stops: Array, rims: Array, darkness: Array) -> None:
    """Bent to the left, so that there and back are two lines."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Curve

    across = (stops - starts) @ np.array([[0, 1], [-1, 0]])
    bends = (starts + stops) / 2 + 0.12 * across
    codes = [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]
    curves = [Curve(list(points), codes) for points in zip(starts, bends, stops, strict=True)]
    axes.add_collection(
        PathCollection(curves, facecolors="none", edgecolors=_greys(darkness), linewidths=0.9)
    )
    ahead = stops - bends
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    tips = stops - rims[:, None] * ahead
    axes.quiver(
        *tips.T, *(0.02 * ahead).T, color=_greys(darkness), pivot="tip", angles="xy", scale_units="xy", scale=1,
        width=0.003, headwidth=5, headlength=8, headaxislength=7,
    )  # fmt: skip


def _greys(darkness: Array) -> list[str]:
    return [str(1 - dark) for dark in darkness]


def heat_map(matrix: Array, tokens: Sequence[str], path: Path, *, most: int = 80) -> Array:
    """matrix (V, V) of counts -> the drawn part of it; rows are the token before, columns the one after"""
    kept = _frequent(matrix, most)
    drawn = matrix[np.ix_(kept, kept)]
    labels = [visible(tokens[i]) for i in kept]
    size = 3 + 0.16 * len(kept)
    figure, axes = canvas(size=(size, size))
    picture = axes.imshow(np.log1p(drawn), cmap="Blues")
    axes.set_xticks(range(len(kept)), labels, fontsize=7)
    axes.set_yticks(range(len(kept)), labels, fontsize=7)
    axes.set(xlabel="token after", ylabel="token before")
    figure.colorbar(picture, label="ln(1 + count)", shrink=0.7)
    save(figure, path)
    return drawn


def one_hot_slice(rows: Array, tokens: Sequence[str], path: Path) -> Array:
    """rows (n - 1, V) of zeros and ones: the context of one n-gram as the network multiplies it"""
    figure, axes = canvas(size=(3 + 0.22 * rows.shape[1], 1 + 0.4 * len(rows)))
    axes.imshow(rows, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(rows.shape[1]), [visible(t) for t in tokens], fontsize=8)
    axes.set_yticks(range(len(rows)), [f"token {i + 1}" for i in range(len(rows))], fontsize=8)
    save(figure, path)
    return rows


def _frequent(matrix: Array, most: int) -> Array:
    """The indices of the tokens that occur most, in their own order."""
    often = matrix.sum(axis=0) + matrix.sum(axis=1)
    chosen = np.argsort(-often, kind="stable")[:most]
    return np.sort(chosen[often[chosen] > 0])
