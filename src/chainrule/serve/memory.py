"""The memory that a model takes while it is served, by formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chainrule.generate.engine.memory import footprint
from chainrule.models import LanguageModel


class Memory(NamedTuple):
    """Bytes of a model and of its draft."""

    weights: int
    caches: int
    """When all texts are as long as they may be."""

    def __str__(self) -> str:
        weights, caches, both = (f"{n / 2**20:,.1f} MB" for n in (*self, sum(self)))
        return f"{weights} of weights, {caches} of caches at most, {both} in all"


def memory_of(
    decoders: Sequence[LanguageModel],
    weights: str,
    slots: int,
    context: int | None,
    limit: int | None,
    cache: str = "fp32",
) -> Memory:
    """Of models that decode the same texts in so many slots; `limit` is that of their caches together"""
    found = [footprint(model, weights, cache) for model in decoders]
    caches = sum(each.total(slots, context or 0) - each.weights for each in found)
    return Memory(sum(each.weights for each in found), caches if limit is None else min(caches, limit))


def shares(memory: int, model: LanguageModel, draft: LanguageModel, cache: str = "fp32") -> tuple[int, int]:
    """Bytes for the caches of a model and of its draft: both hold the same number of tokens"""
    ours, its = (footprint(each, cache=cache).token for each in (model, draft))
    return max(1, memory * ours // max(1, ours + its)), max(1, memory * its // max(1, ours + its))
