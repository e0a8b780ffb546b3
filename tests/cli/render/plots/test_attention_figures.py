"""The figures of attention and of positions show the right numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from chainrule import inspect
from chainrule.cli import main
from chainrule.cli.commands.figures import draw
from chainrule.cli.render.plots import attention
from chainrule.lessons.attention_heads import LETTERS, texts, trained_gpt
from chainrule.nn.positions import sinusoidal, wavelengths
from tests.vectors import vector


@pytest.mark.requirement("R-500")
def test_attention_maps(tmp_path: Path) -> None:
    figure = attention.attention_maps()
    maps = [ax for ax in figure.axes if ax.images and ax.get_title()]
    assert len(maps) == 6
    for ax in maps:
        A = np.asarray(ax.images[0].get_array())
        np.testing.assert_allclose(A.sum(axis=1), 1, atol=1e-12 if A.dtype == np.float64 else 1e-6)
        words = [label.get_text() for label in ax.get_xticklabels()]
        assert words == [label.get_text() for label in ax.get_yticklabels()] and len(words) == len(A)
        assert ("causal" in ax.get_title()) == (not np.triu(A, 1).any())
    v = vector("004-9.5-rows")
    table = np.asarray(maps[0].images[0].get_array())
    assert table.tolist() == v.inputs["A"]
    v.check(table.sum(axis=1))
    assert [label.get_text() for label in maps[0].get_xticklabels()] == ["The", "cat", "sat"]
    assert [text.get_text() for text in maps[0].texts] == [f"{a:.2f}" for a in table.reshape(-1)]
    heads = [np.asarray(ax.images[0].get_array()) for ax in maps[1:]]
    assert all(abs(a - b).max() > 0.1 for i, a in enumerate(heads) for b in heads[:i] if a.shape == b.shape)
    model, ids = trained_gpt(), texts(1, step=1 << 20)
    (trained,) = inspect.maps(model, ids).values()  # (1, H, T, T)
    for ax, A in zip(maps[4:], trained[0], strict=True):
        assert "trained" in ax.get_title() and (np.asarray(ax.images[0].get_array()) == A).all()
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert labels == [LETTERS[id] for id in ids[0]]
    assert draw("attention-maps", tmp_path).stat().st_size > 5000


@pytest.mark.requirement("R-501")
def test_positions(tmp_path: Path) -> None:
    figure = attention.positions()
    left, right, *_ = figure.axes
    image = np.asarray(left.images[0].get_array())
    assert image.shape == (64, 16)
    np.testing.assert_array_equal(image, sinusoidal(64, 16))
    assert left.images[0].get_extent() == [-0.5, 15.5, 63.5, -0.5]  # rows 0-63, columns 0-15
    for pair, line in enumerate(right.lines):
        np.testing.assert_array_equal(line.get_ydata(), sinusoidal(64, 16)[:, 2 * pair])
        assert f"{wavelengths(16)[pair]:.0f} positions" in line.get_label()
    assert draw("positions", tmp_path).read_bytes() == draw("positions", tmp_path / "again").read_bytes()


@pytest.mark.requirement("R-456")
def test_the_time_of_attention_grows_with_the_square(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, time_growth = [], attention.time_growth
    monkeypatch.setattr(attention, "growth", partial(attention.growth, patience=0.2))
    monkeypatch.setattr(attention, "time_growth", lambda: drawn.append(time_growth()) or drawn[-1])
    main(["figures", "attention-growth", "--out", str(tmp_path)])
    assert (tmp_path / "attention-growth.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = drawn
    measured, square = figure.axes[0].lines
    n, milliseconds = measured.get_xdata(), measured.get_ydata()
    assert (n[1:] == 2 * n[:-1]).all() and len(n) >= 3  # n, 2n, 4n, ...
    ratios = milliseconds[1:] / milliseconds[:-1]
    assert 3 < ratios[-1] < 5.5, ratios  # tends to 4
    np.testing.assert_allclose(square.get_ydata()[1:] / square.get_ydata()[:-1], 4)
    assert [text.get_text() for text in figure.axes[0].texts] == [f"× {ratio:.1f}" for ratio in ratios]
