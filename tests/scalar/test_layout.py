"""Columns by distance, no needless crossings, and users level with what they use."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.scalar import Value, add, graphs
from chainrule.scalar.layout import Layout, Place, arrange

trees = st.recursive(st.just(None), lambda parts: st.lists(parts, min_size=1, max_size=3), max_leaves=12)


def grow(shape: list | None) -> Value:
    return Value(1.0) if shape is None else add(*map(grow, shape))


def crossings(layout: Layout) -> int:
    """Pairs of edges that change sides between two columns."""
    column = {place: i for i, places in enumerate(layout.columns) for place in places}
    pieces: dict[int, list[tuple[Place, Place]]] = {}
    for path in layout.edges:
        for a, b in pairwise(path):
            pieces.setdefault(column[a], []).append((a, b))
    return sum(
        (p.y - r.y) * (q.y - s.y) < 0
        for group in pieces.values()
        for (p, q), (r, s) in combinations(group, 2)
    )


def layout(root: Value) -> Layout:
    return arrange(root, node_size=40, bend_size=6, gap=14)


@given(trees)
def test_a_tree_is_drawn_without_crossings(shape: list | None) -> None:
    root = grow(shape)
    plan = layout(root)
    assert crossings(plan) == 0
    assert (
        sorted(p.y for p in plan.columns[-1]) == [plan.columns[-1][0].y] and plan.columns[-1][0].node is root
    )
    for places in plan.columns:
        for above, below in pairwise(places):
            assert below.y - above.y >= (above.size + below.size) / 2 + 14 - 1e-9
    assert min(p.y - p.size / 2 for places in plan.columns for p in places) == pytest.approx(0)


def test_edges_advance_one_column_at_a_time() -> None:
    plan = layout(graphs.quadratic(1.0)["f"])
    column = {place: i for i, places in enumerate(plan.columns) for place in places}
    assert any(len(path) > 2 for path in plan.edges)  # x reaches 4 x past the column of x²
    for path in plan.edges:
        assert [column[b] - column[a] for a, b in pairwise(path)] == [1] * (len(path) - 1)
        assert path[0].node is not None and path[-1].node is not None
        assert all(bend.node is None for bend in path[1:-1])
    assert crossings(plan) == 0


def test_a_user_stands_level_with_the_middle_of_its_children() -> None:
    a, b, c, d = (Value(x) for x in (1.0, 2.0, 3.0, 4.0))
    left, right = a * b, c * d
    root = left + right
    y = {place.node: place.y for places in layout(root).columns for place in places}
    assert y[a] < y[b] < y[c] < y[d]
    assert y[left] == pytest.approx((y[a] + y[b]) / 2, abs=1)
    assert y[right] == pytest.approx((y[c] + y[d]) / 2, abs=1)
    assert y[root] == pytest.approx((y[left] + y[right]) / 2, abs=1)
