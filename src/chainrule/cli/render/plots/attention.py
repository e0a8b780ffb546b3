"""Maps of attention with the words they belong to, and positions as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.cli.render.plots.canvas import GOOD, INK, Figure, canvas, colors
from chainrule.inspect import maps
from chainrule.lessons.attention_heads import LETTERS, random_heads, texts, trained_gpt
from chainrule.lessons.attention_scores import growth
from chainrule.nn import Layer
from chainrule.nn.positions import sinusoidal, wavelengths

LENGTHS = (128, 256, 512, 1024, 2048)
WORDS = ("The", "cat", "sat")
TABLE = np.array([[0.70, 0.15, 0.15], [0.10, 0.60, 0.30], [0.05, 0.75, 0.20]])


def attention_maps() -> Figure:
    """The table of the book, three heads with random weights, and both heads of a trained GPT."""
    text = ["the", "cat", "that", "I", "saw", "was", "black"]
    figure, axes = canvas(2, 3, size=(12, 8))
    heat_map(axes[0, 0], TABLE, WORDS, "'The cat sat': each row sums to 1", numbers=True)
    for ax, (name, A) in zip(axes.flat[1:4], random_heads(len(text)), strict=True):
        heat_map(ax, A, text, name)
    ids = texts(1, step=1 << 20)  # training does not get there
    for ax, (name, A) in zip(axes.flat[4:], heads_of(trained_gpt(), ids), strict=True):
        image = heat_map(ax, A, [LETTERS[id] for id in ids[0]], f"{name} of a trained GPT: causal")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.6)
    return figure


def heads_of(model: Layer, ids: Array) -> list[tuple[str, Array]]:
    """The map (T, T) of each head of a model, layer after layer, on ids (1, T)"""
    found = [A for layer in maps(model, ids).values() for A in layer[0]]
    return [(f"head {h}", A) for h, A in enumerate(found, 1)]


def heat_map(ax: Any, A: Any, words: Sequence[str], title: str, *, numbers: bool = False) -> Any:
    """One head: a row for each query, a column for each key, dark where the weight is large."""
    image = ax.imshow(A, cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(words)), words, rotation=45, ha="right")
    ax.set_yticks(range(len(words)), words)
    ax.set(xlabel="looks at", title=title)
    ax.spines[["left", "bottom"]].set_visible(False)
    for i, j in np.ndindex(A.shape) if numbers else ():
        ax.text(j, i, f"{A[i, j]:.2f}", ha="center", va="center", color="white" if A[i, j] > 0.5 else INK)
    return image


def time_growth() -> Figure:
    """The time of attention against the length, beside the line of four times the time for twice the length."""
    found = growth(LENGTHS)
    n, seconds = np.array([(timing.n, timing.seconds) for timing in found]).T
    figure, ax = canvas(size=(6.5, 4.2))
    ax.loglog(n, 1e3 * seconds, "o-", color=GOOD, label="measured, one thread", base=2)
    square = 1e3 * seconds[-1] * (n / n[-1]) ** 2
    ax.loglog(n, square, ":", color=INK, label="four times for twice the length", base=2)
    for before, after in pairwise(found):
        ratio = after.seconds / before.seconds
        ax.annotate(f"× {ratio:.1f}", (after.n, 1e3 * after.seconds), (-30, 4), textcoords="offset points")
    ax.set(xlabel="tokens", ylabel="milliseconds")
    ax.legend(frameon=False, fontsize=9)
    return figure


def positions() -> Figure:
    """Sinusoidal encodings of 64 positions in 16 dimensions, and the sines of four of the pairs."""
    table = sinusoidal(64, 16)
    figure, (left, right) = canvas(1, 2, size=(11, 5), width_ratios=[1, 1.3])
    image = left.imshow(table, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    left.set(xlabel="dimension", ylabel="position", title="each row is the code of one position")
    figure.colorbar(image, ax=left)
    for color, pair in zip(colors(4), (0, 1, 2, 3), strict=True):
        label = f"dimension {2 * pair}: a turn in {wavelengths(16)[pair]:.0f} positions"
        right.plot(table[:, 2 * pair], color=color, label=label)
    right.set(xlabel="position", title="slower from pair to pair", ylim=(-1.1, 1.9))
    right.legend(frameon=False, fontsize=9, loc="upper right")
    return figure
