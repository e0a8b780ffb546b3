"""Mixing several domains in given proportions.

Of every thousand draws each domain gets its exact quota, in shuffled order. So the number of draws of a domain before
draw i is known without counting: each domain goes through its own epochs, and any step can be computed directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from chainrule.data.batches.packed import Packed
from chainrule.data.batches.padded import PAD
from chainrule.data.batches.source import BatchSource
from chainrule.data.order import Order
from chainrule.errors import ConfigError
from chainrule.types import IGNORE, Ids

PERIOD = 1000


class Domain(Protocol):
    """Batches of one kind of text."""

    block_size: int

    @property
    def tokens(self) -> int: ...
    def batch(self, step: int) -> tuple[Any, Ids]: ...


class Mixture(BatchSource):
    """Each batch joins `draws` batches of the domains; with domains of batch_size 1 it mixes by row.

    >>> import numpy as np
    >>> from chainrule.data import Batches, Mixture
    >>> prose, code = (Batches(np.full(99, id), batch_size=1, block_size=4) for id in (1, 2))
    >>> mixture = Mixture({"prose": prose, "code": code}, {"prose": 3, "code": 1}, draws=1000)
    >>> inputs, targets = mixture.batch(step=0)
    >>> inputs.shape, int((inputs[:, 0] == 2).sum())
    ((1000, 4), 250)
    """

    def __init__(
        self, domains: Mapping[str, Domain], weights: Mapping[str, float], *, draws: int, seed: int = 0
    ) -> None:
        if domains.keys() != weights.keys() or not domains:
            named = f"domains {sorted(domains)}, weights {sorted(weights)}"
            raise ConfigError(f"mixture: {named} (must name the same)")
        if draws < 1:
            raise ConfigError(f"mixture: draws {draws} (must be at least 1)")
        self.names = list(domains)
        self.domains = list(domains.values())
        self.quotas = quotas(weights)
        self.ends = np.cumsum(self.quotas)  # of the domains within a period
        self.draws = draws
        self.block_size = max(domain.block_size for domain in self.domains)
        self.order = Order(PERIOD, seed=seed)

    @property
    def tokens(self) -> int:
        each = np.array([domain.tokens for domain in self.domains])
        return max(1, round(self.draws * float(each @ self.quotas) / PERIOD))

    def schedule(self, step: int) -> list[tuple[int, int]]:
        """(domain, step of that domain) of each draw of a batch"""
        first = step * self.draws
        period = np.arange(first, first + self.draws) // PERIOD
        slot = self.order.draws(first, self.draws)
        domain = np.searchsorted(self.ends, slot, side="right")
        within = slot - (self.ends - self.quotas)[domain]
        return list(zip(domain.tolist(), (period * self.quotas[domain] + within).tolist(), strict=True))

    def batch(self, step: int) -> tuple[Any, Ids]:
        """inputs (B, T) and targets (B, T), padded to the longest; packed if those of a domain are"""
        drawn = [self.domains[domain].batch(number) for domain, number in self.schedule(step)]
        longest = max(targets.shape[1] for _, targets in drawn)
        targets = np.concatenate([_widened(targets, longest, IGNORE) for _, targets in drawn])
        rows = [inputs if isinstance(inputs, Packed) else Packed.alone(inputs) for inputs, _ in drawn]
        ids = np.concatenate([_widened(row.ids, longest, PAD) for row in rows])
        if not any(isinstance(inputs, Packed) for inputs, _ in drawn):
            return ids, targets
        return Packed(ids, np.concatenate([_widened(row.segments, longest, 0) for row in rows])), targets


def shares(weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """The weights, which must be positive, so that their sum is 1."""
    values = np.array(list(weights.values()), float)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ConfigError(f"mixture: weights {dict(weights)} (must be positive numbers)")
    return values / values.sum()


def quotas(weights: Mapping[str, float]) -> npt.NDArray[np.int64]:
    """Draws of each domain per period: proportional to the weights, rounded by largest remainders to the right sum."""
    exact = shares(weights) * PERIOD
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: PERIOD - counts.sum()]] += 1
    if (counts == 0).any():
        name = list(weights)[int(counts.argmin())]
        raise ConfigError(f"mixture: the fraction of {name!r} is below 1/{PERIOD} (give it more weight)")
    return counts


def balanced(sizes: Mapping[str, float], power: float = 0.5) -> dict[str, float]:
    """Weights proportional to size^power: 1 keeps the sizes, 0 makes all equal, values between favor small domains."""
    scaled = {name: float(size) ** power for name, size in sizes.items()}
    total = sum(scaled.values())
    return {name: size / total for name, size in scaled.items()}


def _widened(rows: npt.NDArray[Any], width: int, value: int) -> Ids:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=value)
