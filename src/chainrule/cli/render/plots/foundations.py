"""Figures of the mathematics the lessons stand on."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas
from chainrule.foundations.calculus import gradient
from chainrule.foundations.information import entropy as entropy_of
from chainrule.foundations.information import surprise
from chainrule.foundations.linear_algebra import coordinates
from chainrule.lessons.learning_rate import descend
from chainrule.scalar import graphs, svg

PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # behind words on a drawing


def computation_graph() -> str:
    """L = w6 (w3 + w1 w2) with every value and gradient, as SVG."""
    root = graphs.figure_1()["L"]
    root.backward()
    return svg(root)


def two_bases() -> Figure:
    """(3, 4) in the standard basis and in {(1, 1), (1, -1)}: the arrow is the same."""
    v = np.array([3.0, 4.0])
    figure, axes = canvas(1, 2, size=(8.4, 4.4), sharex=True, sharey=True)
    bases = (("e", np.eye(2)), ("b", np.array([[1.0, 1.0], [1.0, -1.0]])))
    for ax, (name, basis) in zip(axes, bases, strict=True):
        c = coordinates(v, basis)
        corner = c[0] * basis[0]
        _arrow(ax, (0, 0), v, INK, 2.6)
        ax.plot(*np.array([[0, 0], corner, v]).T, color=FAINT, linestyle="--", linewidth=1.2)
        for i, b in enumerate(basis):
            _arrow(ax, (0, 0), b, (GOOD, BAD)[i], 1.8)
            shift = (4, -10 if b[1] <= 0 else 4)
            ax.annotate(f"{name}{i + 1}", b, shift, textcoords="offset points", fontsize=10)
        ax.annotate("v", v, (-14, 0), textcoords="offset points", fontsize=12, weight="bold")
        ax.set_title(f"v = {c[0]:g} {name}1 {'-' if c[1] < 0 else '+'} {abs(c[1]):g} {name}2", fontsize=11)
        ax.set(xlim=(-1, 5), ylim=(-1.5, 4.8), aspect="equal")
        ax.grid(color=FAINT, alpha=0.3)
    return figure


def _arrow(ax: Any, start: Any, end: Any, color: str, width: float) -> None:
    shape = {"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=shape)


def chain_rule() -> Figure:
    """y = (3x + 1)² at x = 2: a change is amplified 3 times, then 14 times."""
    x = 2.0
    u = 3 * x + 1
    local = {"du/dx": 3.0, "dy/du": 2 * u}
    figure, ax = canvas(size=(8.4, 2.9))
    widths = [1.0, local["du/dx"], local["du/dx"] * local["dy/du"]]
    names = [f"x = {x:g}", f"u = 3x + 1 = {u:g}", f"y = u² = {u * u:g}"]
    for place, (name, width) in enumerate(zip(names, widths, strict=True)):
        ax.bar(place, width, 0.34, color=(FAINT, GOOD, BAD)[place])
        ax.annotate(f"change × {width:g}", (place, width), (0, 4), textcoords="offset points", ha="center")
        below = {"textcoords": "offset points", "ha": "center", "annotation_clip": False}
        ax.annotate(name, (place, 0), (0, -14), **below)
    for place, (name, factor) in enumerate(local.items()):
        ax.annotate(f"{name} = {factor:g}  →", (place + 0.5, 18), ha="center", fontsize=11, color=INK)
    ax.set(xticks=[], yticks=[], xlim=(-0.5, 2.5), ylim=(0, 50))
    ax.spines["left"].set_visible(False)
    ax.set_title("small changes are amplified on the way: dy/dx = 3 · 14 = 42", fontsize=11)
    return figure


def loss_surface() -> Figure:
    """Contours of x² + y², gradient arrows across them; at (3, 4) the gradient is (6, 8)."""
    figure, ax = canvas(size=(5.8, 5.4))
    grid = np.linspace(-6, 6, 121)
    X, Y = np.meshgrid(grid, grid)
    ax.contour(X, Y, X**2 + Y**2, levels=np.arange(5, 61, 5), cmap="viridis", linewidths=1)
    points = np.array([(x, y) for x in range(-4, 5, 2) for y in range(-4, 5, 2) if (x, y) != (0, 0)], float)
    slopes = np.array([_bowl_gradient(p) for p in points])
    ax.quiver(*points.T, *slopes.T, angles="xy", scale_units="xy", scale=8, color=FAINT, width=0.006)
    steepest = _bowl_gradient(np.array([3.0, 4.0]))
    ax.quiver(3, 4, *steepest, angles="xy", scale_units="xy", scale=8, color=BAD, width=0.01)
    ax.plot(3, 4, "o", color=BAD)
    said = f"gradient at (3, 4): ({steepest[0]:g}, {steepest[1]:g})"
    ax.annotate(said, (3, 4), (-8, 12), textcoords="offset points", ha="right", color=BAD, bbox=PAPER)
    ax.set(xlabel="x", ylabel="y", aspect="equal", xlim=(-6, 6), ylim=(-6, 6))
    ax.set_title("x² + y²; arrows are an eighth of the gradient", fontsize=11)
    return figure


def _bowl_gradient(p: np.ndarray) -> np.ndarray:
    return np.asarray(gradient(lambda x: x @ x, p)).round(6)


def relu() -> Figure:
    """f(x) = 2x, and max(0, 2x)."""
    figure, axes = canvas(1, 2, size=(8, 3.4), sharex=True, sharey=True)
    x = np.linspace(-2, 2, 201)
    curves = ((2 * x, "2x", GOOD), (np.maximum(0, 2 * x), "max(0, 2x)", BAD))
    for ax, (y, name, color) in zip(axes, curves, strict=True):
        ax.axhline(0, color=FAINT, linewidth=0.8)
        ax.axvline(0, color=FAINT, linewidth=0.8)
        ax.plot(x, y, color=color, linewidth=2)
        ax.set(xlabel="x", xlim=(-2, 2))
        ax.set_title(f"f(x) = {name}", fontsize=11)
    return figure


MODELS = {"A": (0.95, 0.03, 0.01, 0.01), "B": (0.25, 0.25, 0.25, 0.25), "C": (0.7, 0.1, 0.1, 0.1)}


def entropy() -> Figure:
    """The entropy of three predictions of four tokens, and the loss as confidence in the truth grows."""
    figure, (left, right) = canvas(1, 2, size=(9, 3.6))
    values = [float(entropy_of(p)) for p in MODELS.values()]
    names = [f"{name}: {', '.join(f'{x:g}' for x in p)}" for name, p in MODELS.items()]
    bars = left.bar(names, values, 0.5, color=GOOD)
    left.bar_label(bars, [f"{value:.3f}" for value in values], padding=2)
    left.axhline(np.log(4), color=INK, linestyle=":", linewidth=1)
    left.tick_params(axis="x", labelsize=7)
    left.set(ylabel="entropy (nats)", title="how undecided a model is", ylim=(0, 1.6))
    p = np.linspace(0.005, 1, 400)
    right.plot(p, surprise(p), color=BAD)
    for at in (0.01, 0.1, 0.25, 0.5, 0.9):
        loss = float(surprise(at))
        right.plot(at, loss, "o", color=BAD, markersize=4)
        right.annotate(f"{at:.0%}: {loss:.2f}", (at, loss), (6, 4), textcoords="offset points", fontsize=8)
    right.set(title="-ln p", xlabel="probability of the truth", ylabel="loss (nats)")
    right.set(xlim=(0, 1), ylim=(0, 5.4))
    return figure


RATES = (0.1, 0.5, 0.9, 1.1)


def learning_rates() -> Figure:
    """θ against the step at four learning rates."""
    figure, axes = canvas(1, 4, size=(11, 3), sharex=True, sharey=True)
    verdicts = ("slow and sure", "there in one step", "overshoots, settles", "overshoots, leaves")
    for ax, rate, verdict in zip(axes, RATES, verdicts, strict=True):
        path = descend(rate, 8)
        ax.axhline(0, color=FAINT, linewidth=0.8)
        ax.plot(path, "o-", color=BAD if rate > 1 else GOOD, markersize=4)
        ax.set_title(f"η = {rate:g}: {verdict}", fontsize=10)
        ax.set(xlabel="step")
    axes[0].set_ylabel("θ")
    return figure
