"""The figures of count models, of learning rates and of what a line cannot separate show the right numbers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from chainrule.cli.render.plots import FIGURES, ngram
from chainrule.lessons import learning_rate, separation
from chainrule.models import NGram, Terminals


@pytest.fixture
def drawn(tmp_path: Path) -> Any:
    """Draw a figure by its name into a file; returns the figure."""

    def by_name(name: str) -> Figure:
        module, _, function = FIGURES[name][0].partition(".")
        figure: Figure = getattr(importlib.import_module(f"chainrule.cli.render.plots.{module}"), function)()
        figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
        return figure

    return by_name


def shown_edges(ax: Any) -> list[float]:
    """The darkness of every loop and curve on the axes."""
    return [1 - color[0] for collection in ax.collections[:2] for color in collection.get_edgecolors()]


@pytest.mark.requirement("R-484")
def test_the_graph_of_emma(drawn: Any) -> None:
    model = NGram.fit([[1, 2, 2, 3]], order=2, vocab_size=5, ends=Terminals(0, 4))
    graph = ngram.graph_of(model.adjacency(), ["<S>", "e", "m", "a", "<E>"])
    assert len(graph.vertices) == len(graph.edges) == 5
    assert [e.source for e in graph.edges if e.source == e.target] == ["m"]
    ax = drawn("bigram-emma").axes[0]
    assert [text.get_text() for text in ax.texts] == graph.vertices
    loops, arrows, heads = ax.collections
    assert (len(loops.get_paths()), len(arrows.get_paths()), heads.N) == (1, 4, 4)


@pytest.mark.requirement("R-485")
def test_the_graph_of_the_data_set(drawn: Any) -> None:
    figure = drawn("bigram-graph")
    darkness = shown_edges(figure.axes[0])
    assert len(darkness) > 1000 and min(darkness) < 0.1 and max(darkness) == pytest.approx(1)
    title = figure.axes[0].get_title()
    assert title.startswith("names end most often in e (") and title.count("(") == 5
    counts = np.random.default_rng(0).integers(0, 50, (12, 12))
    edges = ngram.graph_of(counts, "abcdefghijkl").edges
    assert [e.times for e in edges] == sorted(e.times for e in edges)
    assert all((a.times < b.times) == (a.darkness < b.darkness) for a in edges for b in edges)


@pytest.mark.requirement("R-486")
def test_the_one_hot_slice_of_a_4_gram(drawn: Any) -> None:
    rows = drawn("one-hot").axes[0].images[0].get_array()
    assert rows.shape == (3, 26) and (rows.sum(axis=1) == 1).all() and set(np.unique(rows)) == {0, 1}


@pytest.mark.requirement("R-487")
def test_the_loss_against_the_learning_rate(drawn: Any) -> None:
    ax = drawn("rate-search").axes[0]
    rates = ax.lines[0].get_xdata()
    np.testing.assert_allclose(rates[1:] / rates[:-1], rates[1] / rates[0])
    assert ax.get_xscale() == "log" and len(rates) >= 50
    marked = ax.patches[0]
    low, high = marked.get_x(), marked.get_x() + marked.get_width()
    assert rates[0] < low <= high <= rates[-1]
    losses = ax.lines[1].get_ydata()
    assert losses[(rates >= low) & (rates <= high)].max() < ax.lines[2].get_ydata()[0]  # below the start


@pytest.mark.requirement("R-488")
def test_the_loss_calms_down_when_the_rate_drops(drawn: Any) -> None:
    before, after = (line.get_ydata() for line in drawn("rate-decay").axes[0].lines)
    assert len(after) == learning_rate.STEPS // 10
    assert after.std() < before[-len(after) :].std()


@pytest.mark.requirement("R-497")
def test_xor(drawn: Any) -> None:
    line, network = drawn("xor").axes
    assert line.get_title() == "best line: 75%" and network.get_title() == "network: 100%"
    assert separation.best_line(separation.XOR, np.array([0, 0, 1, 1]))[2] == 1.0  # it can find a line


@pytest.mark.requirement("R-499")
def test_feature_space(drawn: Any) -> None:
    plain, density, ffn = drawn("feature-space").axes
    defect, sound = (points.get_offsets()[0] for points in ffn.collections)
    np.testing.assert_allclose([defect, sound], [[0.65, 1.40], [1.025, 0.95]])
    line = ffn.lines[0].get_ydata()[0]
    assert line == 1.1 and sound[1] < line < defect[1]
    heights = [points.get_offsets()[:, 1] for points in density.collections]
    assert max(heights[0]) < density.lines[0].get_ydata()[0] < min(heights[1])
    points = np.concatenate([np.asarray(collection.get_offsets()) for collection in plain.collections])
    assert separation.best_line(points, np.repeat([1, 0], [3, 4]))[2] < 1
