"""What heads look for: scores of every head for the patterns that are known from trained models.

previous        the token before
first           the first token, where heads rest that have nothing to do
duplicate       an earlier occurrence of the same token
induction       what followed an earlier occurrence of the same token: the start of copying (Olsson et al. 2022)

A score is the attention weight on such keys, averaged over the queries that have one: 0 to 1. On random tokens,
repeated once, only the pattern itself can help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule import random
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.checks import as_rows, check_network
from chainrule.inspect.inside.view import View
from chainrule.models import Model
from chainrule.models.seq2seq.encoder_decoder import EncoderDecoder
from chainrule.types import Ids

KINDS = ("previous", "first", "duplicate", "induction")
LENGTH, ROWS = 24, 4  # random tokens before they are repeated; texts


@dataclass(frozen=True)
class HeadScores:
    """Scores of all heads: a map of blocks × heads for each kind."""

    blocks: list[str]
    scores: dict[str, Array]
    """By kind, (L, H)."""

    def best(self, kind: str) -> tuple[str, int, float]:
        """The head with the highest score of a kind: block, head, score."""
        if kind not in self.scores:
            raise ConfigError(f"head_scores: kind {kind!r} (must be one of {', '.join(KINDS)})")
        found = self.scores[kind]
        block, head = (int(i) for i in np.unravel_index(found.argmax(), found.shape))
        return self.blocks[block], head, float(found[block, head])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {"blocks": self.blocks} | {kind: found.tolist() for kind, found in self.scores.items()}


def repeated_tokens(vocab_size: int, length: int = LENGTH, rows: int = ROWS, *, seed: int = 0) -> Ids:
    """Random tokens, followed by the same once more: (rows, 2 length)

    >>> from chainrule.inspect.inside.heads import repeated_tokens
    >>> ids = repeated_tokens(100, length=3, rows=2)
    >>> ids.shape, bool((ids[:, :3] == ids[:, 3:]).all())
    ((2, 6), True)
    """
    if min(vocab_size, length, rows) < 1:
        raise ConfigError(f"repeated_tokens: {vocab_size}, {length} and {rows} (must be at least 1)")
    once = random.generator("repeated tokens", seed=seed).integers(vocab_size, size=(rows, length))
    return np.concatenate([once, once], axis=1)


def head_scores(model: Model, ids: Any = None, *, seed: int = 0) -> HeadScores:
    """Scores of every head for the known patterns, on random repeated tokens or on ids (T,) or (B, T) of one's own.

    An encoder-decoder reads the same ids on both sides; its attention to the source has no score.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=16, vocab_size=10)
    >>> found = cr.inspect.head_scores(model)
    >>> found.blocks, sorted(found.scores), found.scores["induction"].shape
    (['h.0', 'h.1'], ['duplicate', 'first', 'induction', 'previous'], (2, 2))
    """
    check_network(model)
    if ids is None:
        ids = repeated_tokens(model.config.vocab_size, max(1, min(LENGTH, model.context // 2)), seed=seed)
    ids = as_rows(ids)
    seen = View(model, (ids, ids) if isinstance(model, EncoderDecoder) else ids)
    attending = {name: b for name, b in seen.sites.blocks.items() if any(not a.cross for a in b.attentions)}
    if not attending:
        raise ConfigError(f"head_scores: {type(model).__name__} has no attention (must have some)")
    T, wanted = ids.shape[1], looked_for(ids)
    found: dict[str, list[Array]] = {kind: [] for kind in KINDS}
    for name in attending:
        A = seen.maps(name)[:, :, -T:, -T:]  # without a prefix
        for kind, keys in wanted.items():
            has = np.asarray(keys.any(-1))  # (B, T)
            weights = (A * keys[:, None]).sum(-1)  # (B, H, T)
            found[kind].append((weights * has[:, None]).sum((0, 2)) / max(1, has.sum()))
    return HeadScores(list(attending), {kind: np.stack(rows) for kind, rows in found.items()})


def looked_for(ids: Ids) -> dict[str, Array]:
    """ids (B, T) -> for each kind which keys a query looks at, (B, T, T) booleans"""
    B, T = ids.shape
    before = np.tri(T, k=-1, dtype=bool)
    same = (ids[:, :, None] == ids[:, None, :]) & before  # (B, T, T)
    followed = np.zeros_like(same)
    followed[:, :, 1:] = same[:, :, :-1]  # key s if ids[s - 1] is the token of the query, before it
    first = np.zeros((T, T), bool)
    first[1:, 0] = True
    return {
        "previous": np.broadcast_to(np.eye(T, k=-1, dtype=bool), (B, T, T)),
        "first": np.broadcast_to(first, (B, T, T)),
        "duplicate": same,
        "induction": followed & before,
    }
