"""Two forward passes over the same text side by side: before and after an edit, or two checkpoints.

KL_t = Σ_v p_t(v) ln(p_t(v) / q_t(v))           how far the predictions moved at each position, in nats
TV_h = mean over queries of ½ Σ_s |A - A'|      how far the map of a head moved: 0 the same, 1 nothing in common
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.edits import Edits
from chainrule.inspect.inside.view import View
from chainrule.nn import Layer


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two views of the same text."""

    before: View
    after: View

    def __post_init__(self) -> None:
        sizes = [view.logits.shape[1] for view in (self.before, self.after)]
        if sizes[0] != sizes[1]:
            raise ConfigError(f"compare: vocabularies of {sizes[0]} and {sizes[1]} tokens (must be the same)")

    @property
    def kl(self) -> Array:
        """How far the predictions moved at each position (T,), in nats."""
        p, q = self.before.logprobs.astype(np.float64), self.after.logprobs.astype(np.float64)
        return np.asarray((np.exp(p) * (p - q)).sum(-1))

    def changes(self, position: int = -1, k: int = 5) -> list[tuple[int, float, float]]:
        """The k tokens whose probabilities at a position moved most, with P before and after."""
        p, q = (np.exp(view.logprobs[position].astype(np.float64)) for view in (self.before, self.after))
        order = np.argsort(-np.abs(p - q), kind="stable")[:k]
        return [(int(i), float(p[i]), float(q[i])) for i in order]

    def logit_difference(self, token: int, minus: int, position: int = -1) -> tuple[float, float]:
        """logit(token) - logit(minus) at a position, before and after."""
        first, second = (view.logits[position] for view in (self.before, self.after))
        return float(first[token] - first[minus]), float(second[token] - second[minus])

    @property
    def map_distances(self) -> dict[str, Array]:
        """How far the map of each head moved (H,), by block; blocks that only one model has are left out."""
        found = {}
        for name in self.before.blocks:
            pair = [view.sites.blocks.get(name) for view in (self.before, self.after)]
            if not all(block and any(not a.cross for a in block.attentions) for block in pair):
                continue
            A, B = self.before.attention(name), self.after.attention(name)
            if A.shape == B.shape:
                found[name] = np.abs(A - B).sum(-1).mean(-1) / 2
        return found

    def moved_heads(self, n: int = 5) -> list[tuple[str, int, float]]:
        """The n heads whose maps moved most: block, head, distance."""
        heads = [(b, h, float(d)) for b, row in self.map_distances.items() for h, d in enumerate(row)]
        return sorted(heads, key=lambda head: -head[2])[:n]

    def to_dict(self, k: int = 5) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {
            "before": self.before.summary(k),
            "after": self.after.summary(k),
            "kl": self.kl.tolist(),
            "changes": [
                [list(change) for change in self.changes(t, k)] for t in range(len(self.before.tokens))
            ],
            "map_distances": {name: row.tolist() for name, row in self.map_distances.items()},
        }


def effect(model: Layer, ids: Any, edits: Edits) -> Comparison:
    """What edits change while a model reads a text.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.inspect.effect(model, [1, 2, 3], cr.inspect.ZeroHeads("h.0", [0, 1]))
    >>> found.kl.shape, len(found.changes(k=3))
    ((3,), 3)
    """
    return Comparison(View(model, ids), View(model, ids, edits))


def compare(a: Layer, b: Layer, ids: Any) -> Comparison:
    """Two models, such as two checkpoints of a run, on the same text.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> a, b = (cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10) for _ in "ab")
    >>> len(cr.inspect.compare(a, b, [1, 2, 3]).moved_heads(n=2))
    2
    """
    return Comparison(View(a, ids), View(b, ids))
