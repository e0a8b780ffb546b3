"""Whole documents, such as names: many at once, each from a start token to an end token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError
from chainrule.generate.processors import choose
from chainrule.generate.sample import Model
from chainrule.generate.sampling import Sampling
from chainrule.generate.session import session
from chainrule.random import generator
from chainrule.types import Ids

TOGETHER = 256  # documents in one loop: each has a cache of the whole context


def documents(
    model: Model,
    n: int,
    *,
    start: int = 0,
    end: int = 0,
    limit: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> list[Ids]:
    """n documents without their terminals, of at most `limit` tokens.

    Token t of document i is a function of the seed, t and i: more documents leave the first ones alone.
    """
    if n < 1 or limit < 1:
        raise ConfigError(f"documents: {n} of at most {limit} tokens (must be at least 1 each)")
    sampling = Sampling(temperature=temperature, top_k=top_k)
    texts = session(model, batch=min(n, TOGETHER))
    rows: list[list[int]] = [[start] for _ in range(n)]
    for first in range(0, n, TOGETHER):
        active = list(range(first, min(n, first + TOGETHER)))
        texts.keep([])
        for t in range(limit):
            for i, scores in zip(active, texts.read([rows[i][-1:] for i in active]), strict=True):
                rows[i].append(choose(scores, generator("document", t, i, seed=seed), sampling))
            going = [row for row, i in enumerate(active) if rows[i][-1] != end]
            if not going:
                break
            texts.keep(going)
            active = [active[row] for row in going]
    return [np.array(row[1:-1] if row[-1] == end else row[1:], np.int32) for row in rows]


def known_fraction(samples: Sequence[npt.ArrayLike], training: Iterable[npt.ArrayLike]) -> float:
    """The fraction of the samples that are documents of the training set: 1 for a model that only remembers."""
    if not len(samples):
        raise ConfigError("known_fraction: no samples (must be at least one)")
    known = {tuple(np.asarray(document).tolist()) for document in training}
    return sum(tuple(np.asarray(sample).tolist()) in known for sample in samples) / len(samples)
