"""Activation patching: which place of a forward pass carries what makes the difference between two texts.

Run the corrupted text, but with one activation of the clean text. How much of the clean answer comes back?

    recovered = (d - d_corrupted) / (d_clean - d_corrupted),    d = logit(right) - logit(wrong)

(Vig et al. 2020; Meng et al. 2022)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from chainrule.autograd import intervene
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError
from chainrule.inspect.inside.attribution import check_place
from chainrule.inspect.inside.edits import of_first, patched_call
from chainrule.inspect.inside.view import View
from chainrule.inspect.probe import evaluating
from chainrule.nn import Layer

LOGITS = 1 << 25  # at a time


@dataclass(frozen=True)
class Patching:
    """How much of the difference each patch brings back: a map of blocks × positions."""

    blocks: list[str]
    part: str
    clean: float
    """logit(right) - logit(wrong) of the clean text."""
    corrupted: float
    difference: Array
    """The same of the corrupted text with each patch (L, T)."""

    @property
    def recovered(self) -> Array:
        """0: nothing, 1: all of it (L, T)."""
        return (self.difference - self.corrupted) / (self.clean - self.corrupted)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        lists = {"difference": self.difference.tolist(), "recovered": self.recovered.tolist()}
        return asdict(self) | lists


def patching(
    model: Layer,
    clean: Any,
    corrupted: Any,
    right: int,
    wrong: int,
    *,
    part: str = "stream",
    position: int = -1,
    blocks: Sequence[str | int] | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Patching:
    """Patch what a clean text has at one position after one block into a corrupted text of the same length.

    `part` is the residual stream, or what `attention`, `cross_attention` or `mlp` adds to it; `blocks` are all on the
    way to the output unless given, such as those of an encoder. `progress(done, total)` is called after each block.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.inspect.patching(model, [1, 2, 3], [1, 7, 3], right=4, wrong=5)
    >>> found.recovered.shape, int(found.recovered[-1].argmax())      # after the last block all is at the last position
    ((2, 3), 2)
    """
    views = [View(model, ids) for ids in (clean, corrupted)]
    shapes = [[None if x is None else x.shape for x in view.given] for view in views]
    if shapes[0] != shapes[1]:
        raise DataError(f"patching: texts of shapes {shapes[0]} and {shapes[1]} (must be equal)")
    right, other, position = check_place(views[0].logits, right, wrong, position)
    first, second = (float(view.logits[position, right] - view.logits[position, other]) for view in views)
    if first == second:
        raise DataError(f"patching: both texts have a difference of logits of {first:g} (must differ)")
    sites = views[1].sites
    on_spine = {sites.block_at(i): None for i in sites.spine if sites.block_at(i)}
    names = [sites.block(b).name for b in (on_spine if blocks is None else blocks)]
    if not names:
        raise ConfigError(f"patching: {type(model).__name__} has no blocks (must be a stack of layers)")
    rows = []
    for done, name in enumerate(names, 1):
        call = patched_call(sites, name, part)
        logits = _patched(views[1], call, views[0].value(call), position)
        rows.append(logits[:, right] - logits[:, other])
        progress(done, len(names))
    if len({len(row) for row in rows}) > 1:
        raise ConfigError(
            f"patching: blocks {', '.join(names)} (must be of one text: the source or the target)"
        )
    return Patching(names, part, first, second, np.stack(rows).astype(np.float64))


def at_once(seen: View) -> int:
    """Copies of a text that go through the model together."""
    return max(1, LOGITS // seen.logits.size)


def _patched(seen: View, call: str, clean: Array, position: int) -> Array:
    """Logits at a position (T, V): row t is of the text with the clean value (1, T, C) of a call at position t."""
    P = seen.sites.before
    T = clean.shape[1] - P
    found, size = [], at_once(seen)
    for start in range(0, T, size):
        places = np.arange(start, min(start + size, T))
        chosen = np.zeros((len(places), T + P, 1), bool)
        chosen[np.arange(len(places)), P + places] = True
        given = [None if x is None else np.repeat(x, len(places), axis=0) for x in seen.given]
        with evaluating(seen.model), intervene({call: of_first(partial(_replaced, chosen, clean))}):
            found.append(seen.model(*given).numpy()[:, position])
    return np.concatenate(found)


def _replaced(chosen: Array, clean: Array, y: Any) -> Array:
    return np.where(chosen, clean, y.numpy())
