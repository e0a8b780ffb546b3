"""The logit lens: what a model would predict if it stopped after each block. (nostalgebraist 2020)

logits_l = head(norm(stream after block l))             the last norm and the head of the model itself
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.checks import numbers
from chainrule.inspect.inside.edits import Edits
from chainrule.inspect.inside.rerun import head
from chainrule.inspect.inside.view import View, target_loss, target_rank, top_tokens
from chainrule.nn import Layer


@dataclass(frozen=True)
class Lens:
    """Predictions after each block at some positions; rows are `streams`, columns `positions`."""

    streams: list[str]
    """`embedding`, then the blocks."""
    positions: list[int]
    top: list[list[list[tuple[int, float]]]]
    """The most probable tokens with their probabilities."""
    loss: Array
    """-ln P of the right token (L, T), in nats; NaN where none is known."""
    rank: Array
    """How many tokens are more probable than the right one (L, T); -1 where none is known."""

    @property
    def probability(self) -> Array:
        """P of the right token (L, T)."""
        return np.exp(-self.loss)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        loss = [[None if np.isnan(x) else float(x) for x in row] for row in self.loss]
        return vars(self) | {"loss": loss, "rank": self.rank.tolist()}


def logit_lens(
    model: Layer,
    ids: Any,
    *,
    positions: Sequence[int] | None = None,
    top: int = 5,
    edits: Edits = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Lens:
    """What a model would predict at each position after each block, from one forward pass over a text.

    The head is the widest layer: at a few `positions` it costs little. `progress(done, total)` is called after each
    block.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("llama", n_layer=2, n_embd=32, n_hidden=64, vocab_size=10)
    >>> found = cr.inspect.logit_lens(model, [1, 2, 3], top=1)
    >>> found.streams, found.loss.shape
    (['embedding', 'layers.0', 'layers.1'], (3, 3))
    """
    return lens_of(View(model, ids, edits), positions=positions, top=top, progress=progress)


def lens_of(
    seen: View,
    *,
    positions: Sequence[int] | None = None,
    top: int = 5,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Lens:
    """The logit lens of a view, without another forward pass."""
    final = seen.logits  # refuses a model without logits of tokens
    T = len(seen.tokens)
    places = np.arange(T) if positions is None else numbers("position", positions, T)
    targets, streams, rows = seen.targets[places], _streams(seen), []
    for done, name in enumerate(streams, 1):
        last = name == seen.blocks[-1]
        logits = final[places] if last else head(seen.sites, seen.stream(name)[None, places])[0]
        logprobs = np.asarray(ops.log_softmax(np.ascontiguousarray(logits)))
        loss, rank = target_loss(logprobs, targets), target_rank(logprobs, targets)
        rows.append((top_tokens(logprobs, top), loss, rank))
        progress(done, len(streams))
    best, losses, ranks = zip(*rows, strict=True)
    return Lens(streams, places.tolist(), list(best), np.stack(losses), np.stack(ranks))


def _streams(seen: View) -> list[str]:
    """The streams that the head can read: not those of a source, nor a narrow embedding."""
    if not seen.sites.tail or not seen.blocks:
        name = type(seen.model).__name__
        raise ConfigError(f"logit_lens: {name} has no blocks before its head (must be a stack of layers)")
    on_spine = {seen.sites.names[i] for i in seen.sites.spine}
    width = seen.stream(seen.blocks[-1]).shape[-1]
    named = seen.sites.streams.items()
    return [name for name, call in named if call in on_spine and seen.stream(name).shape[-1] == width]
