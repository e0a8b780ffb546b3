"""What follows what: the transition graph, the heat map, and a one-hot slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.cli.render.plots.canvas import GOOD, Figure, canvas
from chainrule.models import NGram, Terminals
from chainrule.ops import one_hot as one_hot_rows
from chainrule.types import Array


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


def graph_of(matrix: Array, tokens: Sequence[str], *, most: int = 40) -> Graph:
    """matrix (V, V) of counts -> a vertex for each of the `most` frequent tokens, an edge for each pair of them"""
    kept = _frequent(matrix, most)
    matrix, labels = matrix[np.ix_(kept, kept)], [tokens[i] for i in kept]
    pairs = np.argwhere(matrix)
    times = matrix[tuple(pairs.T)]
    darkness = FAINTEST + (1 - FAINTEST) * times / times.max(initial=1)
    edges = [
        Edge(labels[pairs[k, 0]], labels[pairs[k, 1]], int(times[k]), float(darkness[k]))
        for k in np.argsort(times, kind="stable")
    ]
    return Graph(labels, edges)


def transition_graph(graph: Graph) -> Figure:
    """Vertices on a circle, an arrow for each edge."""
    figure, ax = canvas(size=(8, 8))
    n = len(graph.vertices)
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / max(n, 1)
    places = dict(zip(graph.vertices, np.column_stack([np.cos(angle), np.sin(angle)]), strict=True))
    _draw_loops(ax, places, [e for e in graph.edges if e.source == e.target], min(0.09, 2.5 / max(n, 1)))
    _draw_arrows(ax, places, [e for e in graph.edges if e.source != e.target])
    box = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": GOOD}
    for token, (x, y) in places.items():
        ax.text(x, y, visible(token), ha="center", va="center", fontsize=11, zorder=3, bbox=box)
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    ax.set_axis_off()
    return figure


def _draw_loops(ax: Any, places: dict[str, Array], edges: list[Edge], radius: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle

    circles = [Circle(tuple((1 + radius) * places[e.source]), radius) for e in edges]
    ax.add_collection(PatchCollection(circles, facecolors="none", edgecolors=_greys(edges)))


def _draw_arrows(ax: Any, places: dict[str, Array], edges: list[Edge]) -> None:
    """Bent to the left, so that there and back are two lines."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Curve

    if not edges:
        return
    starts = np.array([places[e.source] for e in edges])
    stops = np.array([places[e.target] for e in edges])
    bends = (starts + stops) / 2 + 0.12 * (stops - starts) @ np.array([[0, 1], [-1, 0]])
    codes = [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]
    curves = [Curve(list(points), codes) for points in zip(starts, bends, stops, strict=True)]
    ax.add_collection(PathCollection(curves, facecolors="none", edgecolors=_greys(edges), linewidths=0.9))
    ahead = stops - bends
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    rims = np.array([0.05 if len(e.target) == 1 else 0.085 for e in edges])  # of the vertices, about
    tips = stops - rims[:, None] * ahead
    ax.quiver(
        *tips.T, *(0.02 * ahead).T, color=_greys(edges), pivot="tip", angles="xy", scale_units="xy", scale=1,
        width=0.003, headwidth=5, headlength=8, headaxislength=7,
    )  # fmt: skip


def _greys(edges: list[Edge]) -> list[str]:
    return [str(1 - edge.darkness) for edge in edges]


def heat_map(matrix: Array, tokens: Sequence[str]) -> Figure:
    """matrix (V, V) of counts: a row for each token before, a column for each after; of the 80 most frequent"""
    kept = _frequent(matrix, 80)
    labels = [visible(tokens[i]) for i in kept]
    side = 3 + 0.16 * len(kept)
    figure, ax = canvas(size=(side, side))
    picture = ax.imshow(np.log1p(matrix[np.ix_(kept, kept)]), cmap="Blues")
    ax.set_xticks(range(len(kept)), labels, fontsize=7)
    ax.set_yticks(range(len(kept)), labels, fontsize=7)
    ax.set(xlabel="token after", ylabel="token before")
    figure.colorbar(picture, label="ln(1 + count)", shrink=0.7)
    return figure


def _frequent(matrix: Array, most: int) -> Array:
    """The indices of the tokens that occur most, in their own order."""
    often = matrix.sum(axis=0) + matrix.sum(axis=1)
    chosen = np.argsort(-often, kind="stable")[:most]
    return np.sort(chosen[often[chosen] > 0])


def visible(token: str) -> str:
    """A token as a label: white space gets a sign one can see."""
    return {" ": "␣", "\n": "↵", "\t": "⇥"}.get(token, token)


def emma() -> Figure:
    """The bigrams of one name, with a start and an end of their own."""
    model = NGram.fit([[1, 2, 2, 3]], order=2, vocab_size=5, ends=Terminals(0, 4))
    return transition_graph(graph_of(model.adjacency(), ["<S>", "e", "m", "a", "<E>"]))


def identifiers() -> Figure:
    """The bigrams of all names in the standard library; the letters that most often end one are in the title."""
    from chainrule.cli.commands.ngram import Source, ranking
    from chainrule.data import load

    source = Source.of(load("identifiers").text, True)
    matrix = NGram.fit(source.documents, order=2, vocab_size=len(source.tokens)).adjacency()
    figure = transition_graph(graph_of(matrix, source.tokens))
    ends = ", ".join(f"{token} ({times:,})" for token, times in ranking(matrix[:, 0], source.tokens))
    figure.axes[0].set_title(f"names end most often in {ends}", fontsize=11)
    return figure


def one_hot() -> Figure:
    """The context 'emm' of the 4-gram 'emma' as the network multiplies it: a row per token, a 1 per row."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    figure, ax = canvas(size=(8, 1.8))
    rows = one_hot_rows([letters.index(c) for c in "emm"], 26)
    ax.imshow(rows, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(26), letters, fontsize=8)
    ax.set_yticks(range(3), "emm", fontsize=9)
    return figure
