"""The figures of the lessons: that the files are there, and that they show the right numbers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pytest

from chainrule.cli import main
from chainrule.cli.commands.figures import draw
from chainrule.cli.render.plots import FIGURES, diagnostics, foundations
from chainrule.lessons.attention_scores import score_variance
from tests.vectors import vector


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Draw a figure by name: its path, and the figure itself."""
    saved: list[matplotlib.figure.Figure] = []
    save = matplotlib.figure.Figure.savefig

    def keep(self: matplotlib.figure.Figure, *args: Any, **options: Any) -> None:
        saved.append(self)
        save(self, *args, **options)

    def by_name(name: str) -> tuple[Path, Any]:
        path = draw(name, tmp_path)
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000
        return path, saved[-1] if saved else None

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", keep)
    return by_name


@pytest.mark.requirement("R-489")
def test_loss_curves(drawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "STEPS", 300)
    _, figure = drawn("loss-initialisation")
    bad, good = figure.axes
    assert bad.get_ylim() == good.get_ylim() and bad.get_xlim() == good.get_xlim()
    expected = good.lines[2].get_ydata()[0]
    assert expected == pytest.approx(math.log(27))
    assert abs(good.lines[0].get_ydata()[0] - expected) < 0.05 * expected
    assert bad.lines[0].get_ydata()[0] > expected + 2


@pytest.mark.requirement("R-490")
def test_gradient_maps(drawn: Any) -> None:
    _, figure = drawn("gradient-map")
    shares = []
    for ax in figure.axes[:2]:
        image = ax.images[0].get_array()
        shares.append(np.ma.getmaskarray(np.ma.masked_invalid(image)).mean())
        assert f"{shares[-1]:.0%} saturated" in ax.get_title()
        shown = np.ma.masked_invalid(image).compressed()
        assert (shown >= 1 - 0.99**2 - 1e-12).all()  # what is shown in color has |tanh| <= 0.99
        assert ax.images[0].cmap.get_bad().tolist() == [1, 1, 1, 1]
    assert shares[0] > 0.5 and shares[1] < 0.01


@pytest.mark.requirement("R-491")
def test_the_dead_neuron_is_the_only_white_column(drawn: Any) -> None:
    _, figure = drawn("dead-neuron")
    image = np.ma.masked_invalid(figure.axes[0].images[0].get_array())
    assert np.flatnonzero(np.ma.getmaskarray(image).all(axis=0)).tolist() == [37]
    assert "unit 37" in figure.axes[0].get_title()


@pytest.mark.requirement("R-492")
def test_histograms(drawn: Any) -> None:
    _, figure = drawn("histograms")
    assert len(figure.axes) == 4
    for ax in figure.axes:
        assert len(ax.lines) == 6
        for text in ax.get_legend().get_texts():
            assert all(word in text.get_text() for word in ("mean", "std", "saturated"))
    labels = {ax.get_xlabel() for ax in figure.axes}
    assert labels == {"activation", "gradient of the activation"}
    assert [ax.get_title().partition(":")[0] for ax in figure.axes[:2]] == ["proper", "improper"]


@pytest.mark.requirement("R-493")
def test_the_table_of_logits(drawn: Any) -> None:
    path, _ = drawn("logit-table")
    rows = [line[21:].split() for line in path.read_text().splitlines()[1:]]
    names = ["zeros", "uniform01", "right-label", "wrong-label", "normal1", "normal10", "normal100"]
    assert len(rows) == 7
    for row, name in zip(rows, names, strict=True):
        reference = vector(f"002-table1-{name}").recomputed
        assert float(row[-1]) == pytest.approx(reference["loss"], abs=5e-5)
        if "p" in reference:
            assert [float(p) for p in row[3:6]] == pytest.approx(reference["p"], abs=5e-5)


@pytest.mark.requirement("R-507")
def test_softmax_peaks(drawn: Any) -> None:
    _, figure = drawn("softmax-peaks")
    left, right = figure.axes
    heights = [[bar.get_height() for bar in bars] for bars in left.containers]
    assert max(heights[0]) > 0.7 > 0.5 > max(heights[1]) and all(sum(h) == pytest.approx(1) for h in heights)
    for text, h in zip(left.get_legend().get_texts(), heights, strict=True):
        assert f"largest {max(h):.3f}" in text.get_text()
    plain, scaled = (line.get_ydata()[6] for line in right.lines[:2])  # d = 64
    found = score_variance(64, draws=1000)
    assert (plain, scaled) == (found.plain_peak, found.scaled_peak) and plain > 2 * scaled


@pytest.mark.requirement("R-483")
def test_the_computation_graph(drawn: Any) -> None:
    path, _ = drawn("computation-graph")
    assert path.suffix == ".svg"
    text = " ".join("".join(t.itertext()) for t in ET.parse(path).iter("{http://www.w3.org/2000/svg}text"))
    v = vector("der-graph-L")
    root = foundations.graphs.figure_1()
    root["L"].backward()
    nodes = {name: root[name] for name in ("w1", "w2", "w3", "w4", "w5", "w6", "L")}
    assert sum(not n.op for n in nodes.values()) == 4 and sum(bool(n.op) for n in nodes.values()) == 3
    values = {name: nodes[name].data for name in ("w4", "w5", "L")}
    grads = {f"d{name}": node.grad for name, node in nodes.items() if name != "L"}
    v.check(values | grads)
    for name, node in nodes.items():
        assert name in text and f"{node.data:g}" in text.replace("−", "-")


@pytest.mark.requirement("R-494")
def test_two_bases(drawn: Any) -> None:
    _, figure = drawn("two-bases")
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["v = 3 e1 + 4 e2", "v = 3.5 b1 - 0.5 b2"]
    for ax in figure.axes:
        assert ax.lines[0].get_xydata()[-1].tolist() == [3, 4]


@pytest.mark.requirement("R-495")
def test_the_chain_rule(drawn: Any) -> None:
    _, figure = drawn("chain-rule")
    said = " ".join(t.get_text() for t in figure.axes[0].texts)
    assert "du/dx = 3" in said and "dy/du = 14" in said and "change × 42" in said
    v = vector("004-2.3-chain")
    heights = [bars[0].get_height() for bars in figure.axes[0].containers]
    assert heights == [1, 3, v.recomputed["analytic"]] and v.recomputed["u"] == 7


@pytest.mark.requirement("R-496")
def test_the_loss_surface(drawn: Any) -> None:
    from matplotlib.quiver import Quiver

    _, figure = drawn("loss-surface")
    arrows = [c for c in figure.axes[0].collections if isinstance(c, Quiver)]
    assert (float(arrows[1].U[0]), float(arrows[1].V[0])) == (6, 8)
    assert arrows[1].get_offsets().tolist() == [[3, 4]]


@pytest.mark.requirement("R-498")
def test_relu(drawn: Any) -> None:
    _, figure = drawn("relu")
    (x, y), (x2, y2) = (ax.lines[-1].get_data() for ax in figure.axes)
    assert (x == x2).all() and (y == 2 * x).all() and (y2 == np.maximum(0, 2 * x)).all()


@pytest.mark.requirement("R-504")
def test_entropy(drawn: Any) -> None:
    _, figure = drawn("entropy")
    bars = [bar.get_height() for bar in figure.axes[0].containers[0]]
    for name, bar in zip("ABC", bars, strict=True):
        vector(f"004-3.9-entropy-{name}").check(bar)
    assert [round(bar, 3) for bar in bars] == [0.246, 1.386, 0.940]


@pytest.mark.requirement("R-506")
def test_learning_rates(drawn: Any) -> None:
    _, figure = drawn("learning-rates")
    for ax, rate in zip(figure.axes, foundations.RATES, strict=True):
        v = vector(f"004-5.5.1-gd-{rate}")
        path = ax.lines[-1].get_ydata()
        assert path[0] == 1
        v.check(path[1 : 1 + v.inputs["steps"]])


def test_gradient_depth(drawn: Any) -> None:
    _, figure = drawn("gradient-depth")
    plain, residual = (line.get_ydata()[0] for line in figure.axes[0].lines[:2])
    assert plain < 1e-6 and residual > 0.1


def test_the_command_lists_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["figures"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)
    main(["figures", "relu", "logit-table"])
    assert capsys.readouterr().out.split() == ["figures/relu.png", "figures/logit-table.txt"]
    assert Path("figures/relu.png").exists()
    with pytest.raises(SystemExit) as stop:
        main(["figures", "relux"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: figures: 'relux': no such figure (did you mean relu?)\n"
    with pytest.raises(SystemExit):
        main(["figures", "qqq"])
    assert "'qqq': no such figure (chainrule figures lists them)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["relu", "logit-table", "computation-graph"])
def test_a_place_that_cannot_be_written_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in ("png", "svg", "txt"):
        (tmp_path / f"{name}.{suffix}").mkdir()
    with pytest.raises(SystemExit) as stop:
        main(["figures", name, "--out", str(tmp_path)])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1 and f"{tmp_path / name}." in err
    assert "cannot be written (Is a directory)" in err or "is not a regular file" in err
