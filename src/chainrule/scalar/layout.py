"""Layout of a graph: columns from leaves to root, few crossings, no edge through a box.

The layered method: the longest path to the root gives the column; an edge that skips columns bends in each of them;
sorting each column by its neighbors removes crossings; pulling every place toward its neighbors, without overlap, gives
the heights.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from chainrule.scalar.engine import Value

SWEEPS = 8


@dataclass(eq=False)
class Place:
    """One node, or one bend of a long edge, in its column; `y` is its center."""

    node: Value | None
    size: float
    left: list[Place] = field(default_factory=list)
    right: list[Place] = field(default_factory=list)
    y: float = 0.0


@dataclass
class Layout:
    """`columns` from left to right; `edges` each as the places it passes, from child to user."""

    columns: list[list[Place]]
    edges: list[list[Place]]


def arrange(root: Value, node_size: float, bend_size: float, gap: float) -> Layout:
    """Columns, edges and heights of all nodes below `root`; sizes are the heights of a node and of a bend."""
    order = root.graph()
    depth = {root: 0}
    for node in order:  # users come first, so a node's depth is final when it is reached
        for child in node.children:
            depth[child] = max(depth.get(child, 0), depth[node] + 1)
    last = max(depth.values())
    columns: list[list[Place]] = [[] for _ in range(last + 1)]
    places: dict[Value, Place] = {}
    for node in reversed(order):  # reversed: the first operand is above the second
        places[node] = Place(node, node_size)
        columns[last - depth[node]].append(places[node])
    edges = []
    for node in reversed(order):
        for child in node.children:
            bends = [Place(None, bend_size) for _ in range(depth[child] - depth[node] - 1)]
            for column, bend in enumerate(bends, last - depth[child] + 1):
                columns[column].append(bend)
            path = [places[child], *bends, places[node]]
            for a, b in pairwise(path):
                a.right.append(b)
                b.left.append(a)
            edges.append(path)
    _sort(columns)
    _settle(columns, gap)
    return Layout(columns, edges)


def _sort(columns: list[list[Place]]) -> None:
    """Order each column by the mean rank of its neighbors, in sweeps both ways; keep the best order."""
    best, fewest = [column[:] for column in columns], _crossings(columns)
    for sweep in range(SWEEPS):
        leftward = sweep % 2 == 0
        pairs = list(pairwise(columns))
        for a, b in reversed(pairs) if leftward else pairs:
            moving, fixed = (a, b) if leftward else (b, a)
            rank = {p: i for i, p in enumerate(fixed)}
            near = {p: p.right if leftward else p.left for p in moving}
            wish = {p: _mean((rank[q] for q in near[p]), i) for i, p in enumerate(moving)}
            moving.sort(key=wish.__getitem__)
        if (found := _crossings(columns)) < fewest:
            best, fewest = [column[:] for column in columns], found
    columns[:] = best


def _crossings(columns: list[list[Place]]) -> int:
    """The number of crossing edges: inversions among the right ends in the order of the left ends."""
    count = 0
    for a, b in pairwise(columns):
        rank = {p: i for i, p in enumerate(b)}
        seen: list[int] = []
        for place in a:
            ends = [rank[q] for q in place.right]
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _settle(columns: list[list[Place]], gap: float) -> None:
    """Put a user level with the middle of its children, a leaf with its users, as far as space allows."""
    for column in columns:
        _spread(column, [p.size * i for i, p in enumerate(column)], gap)
    for sweep in range(2 * SWEEPS):
        for column in columns if sweep % 2 else reversed(columns):
            _spread(column, [_mean((q.y for q in p.left or p.right), p.y) for p in column], gap)
    top = min(p.y - p.size / 2 for column in columns for p in column)
    for column in columns:
        for p in column:
            p.y -= top


def _spread(column: list[Place], wishes: list[float], gap: float) -> None:
    """Heights near the wanted ones with `gap` between neighbors: push down, push up, take the middle."""
    distance = [(a.size + b.size) / 2 + gap for a, b in pairwise(column)]
    down, up = wishes[:], wishes[:]
    for i, need in enumerate(distance):
        down[i + 1] = max(down[i + 1], down[i] + need)
    for i in reversed(range(len(distance))):
        up[i] = min(up[i], up[i + 1] - distance[i])
    for p, a, b in zip(column, down, up, strict=True):
        p.y = (a + b) / 2


def _mean(values: Iterable[float], default: float) -> float:
    found = list(values)
    return fmean(found) if found else default
