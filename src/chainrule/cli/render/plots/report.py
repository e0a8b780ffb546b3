"""The figures of a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas, colors
from chainrule.doctor import Report, limits
from chainrule.inspect import LayerReport
from chainrule.inspect.activations import SQUASHING, STREAM

MOST = 8  # curves in one panel; of a deeper model layers are left out evenly


def layers(report: Report) -> Figure:
    """Histograms of the activations of each layer (else of the residual stream) and of their gradients."""
    found = [x for x in report.layers if x.op != STREAM] or list(report.layers)
    shown = found[:: -(-len(found) // MOST)]
    figure, axes = canvas(1, 2, size=(9, 5))
    densities(axes, shown)
    return figure


def densities(pair: Any, shown: Sequence[LayerReport]) -> None:
    """One curve per layer into a pair of axes: its values, and the gradients that came back to them."""
    for layer, color in zip(shown, colors(len(shown)), strict=True):
        for ax, seen in zip(pair, (layer.value, layer.grad), strict=True):
            if seen is None:
                continue
            h = seen.histogram
            said = f"{layer.name}: mean {seen.mean:.1g}, std {seen.std:.2g}"
            word = "saturated" if layer.op in SQUASHING else "flat"
            said += "" if layer.flat is None else f", {layer.flat:.1%} {word}"
            ax.plot((h.edges[1:] + h.edges[:-1]) / 2, h.density, color=color, linewidth=1.3, label=said)
    for ax, name in zip(pair, ("activation", "gradient of the activation"), strict=True):
        ax.set(xlabel=name, yticks=[], ylim=(0, None))
        ax.spines["left"].set_visible(False)
        ax.legend(frameon=False, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17))


def parameters(report: Report) -> Figure:
    """Of every matrix the gradient and the next update, relative to its length."""
    found = [p for p in report.parameters if len(p.shape) >= 2 and p.weight_norm > 0][::-1]
    ratios = [p.update_ratio for p in found]
    figure, axes = canvas(1, 2, size=(10, 1.2 + 0.19 * len(found)), sharey=True)
    names = [p.name for p in found]
    axes[0].barh(names, [p.grad_norm / p.weight_norm for p in found], color=GOOD)
    axes[0].set(xlabel="gradient / weights", xscale="log")
    axes[0].tick_params(axis="y", labelsize=7)
    low, high = limits.UPDATE_RATIO
    axes[1].axvspan(low, high, color=FAINT, alpha=0.25, linewidth=0)
    axes[1].axvline(1e-3, color=INK, linestyle=":", linewidth=1)
    color = [GOOD if low <= (ratio or 0) <= high else BAD for ratio in ratios]
    axes[1].barh(names, [ratio or 0 for ratio in ratios], color=color)
    axes[1].set(xlabel="next update / weights (usual: about 0.001)", xscale="log", xlim=(low / 10, high * 10))
    return figure
