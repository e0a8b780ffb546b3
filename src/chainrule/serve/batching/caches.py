"""Caches: several texts as far as a model has read them, each in a slot of its own.

Reading is as in `generate.session`, but a text can begin while others are being written.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from chainrule.generate.engine.decoder import Decoder
from chainrule.generate.processors import Logits
from chainrule.generate.sample import Model
from chainrule.generate.session import Session, check_fp32, session, vocab_size
from chainrule.models import NGram
from chainrule.trace import NotStreamable


class Caches(Protocol):
    """What a batcher reads with."""

    context: int | None
    """Tokens of a text at most, by the model and by the memory of the caches; None if there is no end."""
    vocab_size: int
    slots: int
    rewinds: bool
    """A text can go back to any of its beginnings."""

    @property
    def pages(self) -> int:
        """Of the KV cache that are in use; 0 for what has none."""

    def read(
        self, pieces: Sequence[Sequence[int]], slots: Sequence[int], every: Sequence[bool]
    ) -> list[Logits]:
        """More tokens of the texts in these slots -> for each logits (1, V) after the last of them

        Where `every` says so after each of them: (n, V).
        """

    def keep(self, slot: int, length: int) -> int:
        """Forget all but the first `length` tokens -> how many are kept, which may be fewer"""

    def copy(self, source: int, target: int) -> None:
        """The text of a slot in another one too."""


class DecoderCaches:
    """A model that reads token by token, with a cache or a state for each slot."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.context = decoder.most_tokens if decoder.limited else None
        self.vocab_size = decoder.vocab_size
        self.slots = len(decoder.lengths)
        self.rewinds = decoder.limited  # a recurrent state cannot

    @property
    def pages(self) -> int:
        return self.decoder.pages.held

    def read(
        self, pieces: Sequence[Sequence[int]], slots: Sequence[int], every: Sequence[bool]
    ) -> list[Logits]:
        arrays = [np.asarray(piece, np.int64) for piece in pieces]
        rows = self.decoder.prefill(arrays, slots, every)
        ends = np.cumsum([len(piece) if whole else 1 for piece, whole in zip(pieces, every, strict=True)])
        return np.split(rows, ends[:-1])

    def keep(self, slot: int, length: int) -> int:
        if length >= self.decoder.lengths[slot]:
            return int(self.decoder.lengths[slot])
        if length == 0 or not self.rewinds:
            self.decoder.reset(slot)
        else:
            self.decoder.truncate(slot, length)
        return int(self.decoder.lengths[slot])

    def copy(self, source: int, target: int) -> None:
        self.decoder.copy(source, target)


class SessionCaches:
    """Any other model: counts, or a window that is read again. Each slot is a session of one text."""

    context: int | None = None
    rewinds = False
    pages = 0

    def __init__(self, model: Model, slots: int) -> None:
        self.vocab_size = vocab_size(model)
        self.slots = slots
        self._fresh = session(model)
        self._sessions: list[Session] = [copy.copy(self._fresh) for _ in range(slots)]
        self._lengths = [0] * slots

    def read(
        self, pieces: Sequence[Sequence[int]], slots: Sequence[int], every: Sequence[bool]
    ) -> list[Logits]:
        found: list[Any] = []
        for piece, slot, whole in zip(pieces, slots, every, strict=True):
            parts = [[token] for token in piece] if whole else [piece]
            found.append(np.concatenate([self._sessions[slot].read([part]) for part in parts]))
            self._lengths[slot] += len(piece)
        return found

    def keep(self, slot: int, length: int) -> int:
        if length < self._lengths[slot]:
            self._sessions[slot], self._lengths[slot] = copy.copy(self._fresh), 0
        return self._lengths[slot]

    def copy(self, source: int, target: int) -> None:
        self._sessions[target] = copy.copy(self._sessions[source])
        self._lengths[target] = self._lengths[source]


def caches_of(
    model: Model,
    weights: str = "fp32",
    slots: int = 1,
    *,
    cache_memory: int | None = None,
    cache: str = "fp32",
) -> Caches:
    """Caches for so many texts of a language model, together of at most `cache_memory` bytes if it is given

    `weights` and `cache` are formats of `engine.weights`. Reading what does not fit raises `CacheFull`, and changes
    nothing.
    """
    vocab_size(model)  # which says what is no language model
    if not isinstance(model, NGram):
        try:
            return DecoderCaches(Decoder(model, weights, slots, cache_memory=cache_memory, cache=cache))
        except NotStreamable:
            pass
    check_fp32(model, weights, cache)
    return SessionCaches(model, slots)
