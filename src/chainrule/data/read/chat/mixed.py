"""Conversations of several sources in given proportions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chainrule.data.mixing import shares
from chainrule.data.order import Order
from chainrule.data.read.chat.layouts import Conversation
from chainrule.errors import ConfigError


def mixed(
    sources: Mapping[str, Sequence[Conversation]],
    weights: Mapping[str, float],
    count: int | None = None,
    seed: int = 0,
) -> dict[str, list[Conversation]]:
    """So many conversations of each source, drawn at random, that their numbers are as the weights; none twice.

    `count` is the number of all; without, it is as large as the sources allow.

    >>> talks = {name: [Conversation.of(f"{name} {i}", "yes") for i in range(9)] for name in "ab"}
    >>> {name: len(drawn) for name, drawn in mixed(talks, {"a": 1, "b": 2}).items()}
    {'a': 4, 'b': 9}
    """
    if sources.keys() != weights.keys() or not sources:
        raise ConfigError(
            f"mixture: sources {sorted(sources)}, weights {sorted(weights)} (must name the same)"
        )
    parts = shares({name: weights[name] for name in sources})
    sizes = np.array([len(talks) for talks in sources.values()])
    most = float((sizes / parts).min())
    if count is not None and not 1 <= count <= most:
        name = list(sources)[int((sizes / parts).argmin())]
        rule = f"must be from 1 to {int(most):,}: {name} has {int(sizes[list(sources).index(name)]):,}"
        raise ConfigError(f"mixture: count is {count:,} ({rule})")
    wanted = np.floor((most if count is None else count) * parts + 1e-9).astype(int)
    found = {}
    for (name, talks), n in zip(sources.items(), wanted.tolist(), strict=True):
        if not n:
            raise ConfigError(
                f"mixture: none of {name!r} at this size (give it more weight, or a larger count)"
            )
        chosen = sorted(Order(len(talks), seed=seed).draws(0, n).tolist())
        found[name] = [talks[i] for i in chosen]
    return found
