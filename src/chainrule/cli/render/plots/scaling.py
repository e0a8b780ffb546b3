"""Pictures of scaling laws, and of fits to runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas, colors
from chainrule.scaling.fits.isoflop import GAP
from chainrule.scaling.laws import PowerLaw, chinchilla, optimal
from chainrule.scaling.laws.capability import composite
from chainrule.scaling.laws.joint import FLOPS
from chainrule.scaling.laws.power import decades
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED, KAPLAN_FRONTIER

if TYPE_CHECKING:
    from chainrule.scaling.fits import Runs
    from chainrule.scaling.fits.report import Report

STEPS = 30  # of the task that seems to emerge


def power_law() -> Figure:
    """One law twice: on plain axes a curve that flattens, on logarithmic axes a straight line."""
    law = PowerLaw.of_prefactor(10**1.3, 0.1)
    x = np.logspace(6, 10, 200)
    figure, (plain, logs) = canvas(1, 2, size=(8.4, 3.6))
    for ax in (plain, logs):
        ax.plot(x, law(x), color=GOOD, linewidth=2)
        ax.plot(x[::50], law(x[::50]), "o", color=INK, markersize=4)
        ax.set(xlabel="parameters N", ylabel="loss, nats")
    logs.set(xscale="log", yscale="log")
    plain.set_title("plain axes: ever less for the same step", fontsize=11)
    logs.set_title(f"logarithmic axes: slope -α = -{law.exponent:g}", fontsize=11)
    return figure


def allocation() -> Figure:
    """The size that each way of splitting a budget asks for."""
    C = np.logspace(18, 25, 50)
    figure, ax = canvas(size=(7.2, 4.2))
    start = chinchilla(C[0]).params
    lines = {
        "20 tokens per parameter, C^0.5": ([chinchilla(c).params for c in C], INK, "--"),
        f"Chinchilla's law, C^{CHINCHILLA_REFITTED.a:.2f}": (
            [optimal(CHINCHILLA_REFITTED, c).params for c in C],
            GOOD,
            "-",
        ),
        f"Kaplan's frontier, C^{KAPLAN_FRONTIER}": (start * (C / C[0]) ** KAPLAN_FRONTIER, BAD, "-"),
    }
    for label, (sizes, color, style) in lines.items():
        ax.plot(C, sizes, style, color=color, label=label, linewidth=2)
    ax.set(xscale="log", yscale="log", xlabel="compute, FLOPs", ylabel="parameters N")
    ax.set_title("how large a model to train: the exponents disagree", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    return figure


def emergence() -> Figure:
    """Steps that get better steadily, and a task of many of them that seems to appear at once."""
    N = np.logspace(6, 11, 200)
    p = 1 - PowerLaw.of_prefactor(15.0, 0.25)(N)
    figure, ax = canvas(size=(7.2, 3.8))
    ax.plot(N, p, color=FAINT, linewidth=2, label="one step right")
    ax.plot(N, composite(p, STEPS), color=BAD, linewidth=2, label=f"all {STEPS} steps right: p^{STEPS}")
    ax.set(xscale="log", xlabel="parameters N", ylabel="fraction of the tasks", ylim=(0, 1))
    ax.set_title("the same progress, measured with and without a threshold", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    return figure


def fitted(found: Report, runs: Runs) -> Figure:
    """The runs and the law: loss against compute, colored by size; or valleys at equal compute."""
    return _valleys(found, runs) if found.valleys else _curve(found, runs)


def _valleys(found: Report, runs: Runs) -> Figure:
    figure, (ax, sizes) = canvas(1, 2, size=(9.6, 4.0))
    for color, valley in zip(colors(len(found.valleys)), found.valleys, strict=True):
        near = np.abs(decades(runs.flops / valley["flops"])) < GAP
        ax.plot(runs.params[near], runs.loss[near], "o", color=color, markersize=4)
        N = np.geomspace(runs.params[near].min(), runs.params[near].max(), 80)
        ax.plot(N, np.polyval(valley["curve"], np.log(N)), color=color, label=f"{valley['flops']:.1e} FLOPs")
        ax.plot(valley["params"], valley["loss"], "*", color=INK, markersize=9)
    ax.set(xscale="log", xlabel="parameters N", ylabel="loss, nats")
    ax.set_title("equal compute: too small on the left, too large on the right", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    C = np.array([valley["flops"] for valley in found.valleys])
    best = np.array([valley["params"] for valley in found.valleys])
    a = found.estimates["a"]
    sizes.plot(C, best, "*", color=INK, markersize=9)
    middle = np.exp(np.log(C).mean()), np.exp(np.log(best).mean())
    wide = np.geomspace(C.min() / 2, C.max() * 2, 50)
    sizes.plot(wide, middle[1] * (wide / middle[0]) ** a.value, color=GOOD)
    low, high = (middle[1] * (wide / middle[0]) ** each for each in (a.low, a.high))
    sizes.fill_between(wide, np.minimum(low, high), np.maximum(low, high), color=GOOD, alpha=0.2, linewidth=0)
    sizes.set(xscale="log", yscale="log", xlabel="compute, FLOPs", ylabel="best N")
    sizes.set_title(f"N ∝ C^{a.value:.2f}, 95 % from {a.low:.2f} to {a.high:.2f}", fontsize=10)
    return figure


def _curve(found: Report, runs: Runs) -> Figure:
    figure, ax = canvas(size=(7.2, 4.2))
    name = found.quantity if found.form not in ("chinchilla", "kaplan") else "flops"
    x = getattr(runs, name)
    known = bool(np.isfinite(runs.params).all())
    points = ax.scatter(x, runs.loss, c=runs.params if known else INK, norm="log", cmap="viridis", s=18)
    if known:
        figure.colorbar(points, ax=ax, label="parameters N")
    wide = np.geomspace(x.min(), 3 * x.max(), 80)
    ax.plot(wide, _law(found)(wide), color=BAD, linewidth=1.6, label=_label(found))
    ax.set(xscale="log", yscale="log", xlabel=name, ylabel="loss, nats")
    ax.legend(frameon=False, fontsize=9)
    return figure


def _law(found: Report) -> Any:
    """Loss as a function of what stands on the axis: of compute the lowest loss that the joint law allows."""
    from chainrule.scaling.fits.report import JOINT

    if found.form not in JOINT:
        return PowerLaw(**found.law)
    law: Any = JOINT[found.form][1](**found.law)

    def lowest(C: Any) -> Any:
        N = law.best_params(C)
        return law(N, C / (FLOPS * N))

    return lowest


def _label(found: Report) -> str:
    from chainrule.scaling.fits.report import JOINT

    return "the lowest loss for the compute, by the law" if found.form in JOINT else "the law"
