"""Figures of a network at its start and in training, and what depth and scaling do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import ops, random
from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas
from chainrule.cli.render.plots.report import densities
from chainrule.doctor import limits
from chainrule.inspect import dead_units, gradient_map, saturated_fraction, saturation_point
from chainrule.inspect.losses import moving_mean
from chainrule.lessons import initialization
from chainrule.lessons.attention_scores import random_scores, score_variance
from chainrule.lessons.depth import gradients_by_depth, random_stack
from chainrule.lessons.logits import hand_made_logits

STEPS = 2000


def loss_curves() -> Figure:
    """The same model and data, first weights from N(0, 1), then with the gain of tanh and a small last layer."""
    bad, good, V = initialization.loss_curves(STEPS)
    figure, axes = canvas(1, 2, size=(9, 3.8), sharex=True, sharey=True)
    titles = ("bad: every weight from N(0, 1)", "good: gain/√fan_in, small last layer")
    for ax, title, color, losses in zip(axes, titles, (BAD, GOOD), (bad, good), strict=True):
        ax.plot(losses, color=color, alpha=0.25, linewidth=0.6)
        ax.plot(moving_mean(losses, 50), color=color, linewidth=1.8)
        said = f"ln {V} = {math.log(V):.2f}: a uniform guess"
        ax.axhline(math.log(V), color=INK, linestyle=":", linewidth=1, label=said)
        ax.legend(frameon=False, fontsize=9)
        ax.set_title(f"{title}\nfrom {losses[0]:.2f} to {losses[-100:].mean():.2f} nats", fontsize=10)
        ax.set(xlabel="step", ylim=(0, None), xlim=(0, STEPS))
    axes[0].set_ylabel("loss (nats per letter)")
    return figure


def gradient_maps() -> Figure:
    """1 - tanh² of examples × units; white where |tanh| > 0.99."""
    figure, axes = canvas(1, 2, size=(9, 4.4), sharey=True)
    x = random.generator("gradient map", seed=0).normal(size=(60, 100))
    for ax, spread in zip(axes, (10.0, 0.5), strict=True):
        image = _map(ax, spread * x)
        fraction = saturated_fraction(np.tanh(spread * x))
        ax.set_title(f"inputs of spread {spread:g}: {fraction:.0%} saturated (white)", fontsize=10)
    axes[0].set_ylabel("example")
    figure.colorbar(image, ax=axes, label="fraction of the gradient that passes, 1 - tanh²", shrink=0.85)
    return figure


def dead_neuron() -> Figure:
    """A hidden layer of which one unit has the bias +20."""
    rng = random.generator("dead neuron", seed=0)
    planted = 37
    x = rng.normal(size=(32, 80))
    x[:, planted] += 20
    figure, ax = canvas(size=(9, 3.9))
    image = _map(ax, x)
    (found,) = dead_units(gradient_map(x))
    ax.plot(found, -1.2, "v", color=BAD, markersize=8, clip_on=False)
    ax.set_ylim(len(x) - 0.5, -0.5)
    ax.set_title(f"unit {found} is white for all {len(x)} examples: it is dead", fontsize=10, pad=14)
    ax.set_ylabel("example")
    figure.colorbar(image, ax=ax, label="1 - tanh²", shrink=0.85)
    return figure


def _map(ax: Any, x: np.ndarray) -> Any:
    """The gradient map of pre-activations: dark where the gradient passes, white where it is saturated."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    blues = ListedColormap(colormaps["Blues"](np.linspace(0.2, 1.0, 256)))  # none of which is white
    passing = np.where(np.abs(x) > saturation_point(), np.nan, gradient_map(x))
    ax.set(xlabel="unit")
    colors = blues.with_extremes(bad="white")
    return ax.imshow(passing, cmap=colors, vmin=0, vmax=1, aspect="auto", interpolation="nearest")


def histograms() -> Figure:
    """Six tanh layers: activations and their gradients, weights drawn with the gain of tanh and without."""
    kinds = {"proper: weights drawn with the gain of tanh": True, "improper: without it": False}
    figure, axes = canvas(2, 2, size=(9, 8.4), sharex="row")
    for column, (title, gain) in zip(axes.T, kinds.items(), strict=True):
        densities(column, initialization.deep_tanh(gain=gain).layers)
        column[0].set_title(title, fontsize=11)
    return figure


def logit_table() -> str:
    """What three logits cost when the third token is right."""
    head = f"{'logits':<21}{'':<33}{'softmax':<27}{'loss':>8}"
    lines = [head]
    for row in hand_made_logits():
        logits, p = "".join(f"{x:>11.4f}" for x in row.logits), "".join(f"{p:<8.4f}" for p in row.p)
        lines.append(f"{row.name:<21}{logits}   {p}{row.loss:>8.4f}")
    return "\n".join(lines) + "\n"


def softmax_peaks() -> Figure:
    """Weights of eight keys for one query, and the largest weight as vectors grow."""
    d = 64
    scores = random_scores(d, 1, 8)[0]
    figure, (left, right) = canvas(1, 2, size=(9, 3.6))
    scalings = ((-0.2, "q·k", BAD, scores), (0.2, "q·k / √d", GOOD, scores / np.sqrt(d)))
    for offset, name, color, z in scalings:
        p = ops.softmax(z)
        left.bar(np.arange(8) + offset, p, 0.38, color=color, label=f"{name}: largest {p.max():.3f}")
    left.set(xlabel="key", ylabel="attention weight", title=f"one query, d = {d}")
    left.legend(frameon=False, fontsize=9)
    sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    found = [score_variance(d, draws=1000) for d in sizes]
    right.plot(sizes, [f.plain_peak for f in found], "o-", color=BAD, label="q·k")
    right.plot(sizes, [f.scaled_peak for f in found], "o-", color=GOOD, label="q·k / √d")
    right.axhline(1 / 8, color=INK, linestyle=":", linewidth=1)
    right.annotate("uniform", (256, 1 / 8), (0, 3), textcoords="offset points", ha="right")
    right.set_xscale("log", base=2)
    right.set(title="1000 queries, 8 keys", xlabel="size of a vector, d", ylabel="mean largest weight")
    right.set_ylim(0, 1)
    right.legend(frameon=False, fontsize=9)
    return figure


def gradient_depth() -> Figure:
    """Gradient norms on the way back through fifty tanh layers."""
    weights = random_stack(50, 64, 0.5)
    x = random.generator("gradient depth", seed=0).normal(size=64)
    figure, ax = canvas(size=(7, 3.8))
    for residual, color, name in ((False, BAD, "f(W x)"), (True, GOOD, "x + f(W x)")):
        norms = gradients_by_depth(weights, x, activation="tanh", residual=residual)
        ax.plot(norms, color=color, label=f"{name}: {norms[0]:.1g} at the first layer")
    low, high = limits.GRADIENT
    depth = np.arange(51)[::-1]
    ax.fill_between(range(51), low**depth, high**depth, color=FAINT, alpha=0.25, linewidth=0)
    ax.annotate(f"{low:g} to {high:g} per layer", (3, 3e3), color=INK, fontsize=9)
    ax.set(xlabel="layer", ylabel="gradient, relative to the last", yscale="log", xlim=(0, 50))
    ax.legend(frameon=False, fontsize=9)
    return figure
