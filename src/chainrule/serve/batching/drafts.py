"""Drafts: tokens guessed ahead, so that one pass over the weights checks several of them.

A guess is only ever accepted if it is the token that the model draws at that position, from the logits it has anyway:
the text is the same token for token, greedy or sampled, whatever is guessed (after Leviathan et al. 2023, who sample).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

from chainrule.errors import CacheFull, ConfigError
from chainrule.generate.processors import Logits
from chainrule.generate.requests import Request
from chainrule.serve.batching.caches import Caches
from chainrule.serve.batching.job import Job
from chainrule.serve.batching.prefixes import common

GUESSES = 4
ROWS = 64  # tokens that a draft reads in a step to catch up with texts, for all of them together
LONGEST, SHORTEST = 4, 2  # tokens at the end of a text that are looked up in it


class Drafter(Protocol):
    """Guesses what follows texts."""

    @property
    def pages(self) -> int:
        """Of the KV cache of a draft that are in use."""

    def guess(self, texts: Sequence[tuple[int, Job]]) -> list[list[int]]:
        """(slot, job) of each -> tokens that may follow; no more than the job may write after its next one"""


class NgramLookup:
    """What followed the last few tokens when they occurred before, in the prompt or the text."""

    pages = 0

    def __init__(self, guesses: int = GUESSES) -> None:
        self.guesses = guesses

    def guess(self, texts: Sequence[tuple[int, Job]]) -> list[list[int]]:
        return [looked_up(job.ids.tolist(), allowed(job.request, self.guesses)) for _, job in texts]


def looked_up(ids: list[int], n: int) -> list[int]:
    """At most n tokens that followed the newest earlier occurrence of the end of ids

    >>> from chainrule.serve.batching.drafts import looked_up
    >>> looked_up([1, 2, 3, 4, 9, 1, 2, 3], 2)
    [4, 9]
    """
    for length in range(min(LONGEST, len(ids) - 1), SHORTEST - 1, -1) if n > 0 else ():
        end = ids[-length:]
        for start in range(len(ids) - length - 1, -1, -1):
            if ids[start] == end[0] and ids[start : start + length] == end:
                return ids[start + length : start + length + n]
    return []


class DraftModel:
    """A smaller model with the same tokens, which draws at each position with the same random number."""

    def __init__(self, caches: Caches, vocab_size: int, guesses: int = GUESSES) -> None:
        if caches.vocab_size != vocab_size:
            rule = "must be equal: they share their tokens"
            raise ConfigError(f"serve: draft of {caches.vocab_size} tokens, model of {vocab_size} ({rule})")
        if not caches.rewinds:
            raise ConfigError("serve: a draft that cannot go back in its text (must be a transformer)")
        self.caches = caches
        self.guesses = guesses
        self.seen = [array("i") for _ in range(caches.slots)]
        """What each of its caches holds."""

    @property
    def pages(self) -> int:
        return self.caches.pages

    def guess(self, texts: Sequence[tuple[int, Job]]) -> list[list[int]]:
        """Of texts that it has not read yet it reads some more, and guesses in a later step."""
        counts = [self._count(job) for _, job in texts]
        asked = [slot for (slot, _), count in zip(texts, counts, strict=True) if count]
        try:
            return self._guess(texts, counts, asked)
        except CacheFull:
            self._evict(asked)
        except Exception:  # the caches may hold anything
            for slot in asked:
                self._keep(slot, 0)
        return [[] for _ in texts]

    def _guess(
        self, texts: Sequence[tuple[int, Job]], counts: list[int], asked: Sequence[int]
    ) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in texts]
        for (slot, job), count in zip(texts, counts, strict=True):
            if count:
                self._keep(slot, min(common(self.seen[slot], job.ids), job.n_tokens - 1))
        behind = [i for i, text in enumerate(texts) if counts[i] and self._behind(*text)]
        for i in behind:
            counts[i] = 0
        for n in range(max(counts, default=0)):
            rows = [i for i, count in enumerate(counts) if n < count]
            slots = [texts[i][0] for i in rows]
            pieces = [
                found[i][-1:] or texts[i][1].ids[len(self.seen[slot]) :].tolist()
                for i, slot in zip(rows, slots, strict=True)
            ]
            for i, logits in zip(rows, self._read(slots, pieces, asked), strict=True):
                request = texts[i][1].request
                found[i].append(request.draw(logits[0], request.tokens + found[i]))
        self._catch_up([texts[i] for i in behind], asked)  # with the memory that the others leave
        return found

    def _count(self, job: Job) -> int:
        """How many guesses fit: the last of them is not read."""
        count = allowed(job.request, self.guesses)
        if self.caches.context is not None:
            count = min(count, self.caches.context - job.n_tokens + 1)
        return max(0, count)

    def _behind(self, slot: int, job: Job) -> bool:
        """More of a text is unread than a step adds to it."""
        unread = job.n_tokens - len(self.seen[slot])
        return unread > self.guesses + 2 or (not self.seen[slot] and unread > 1)

    def _catch_up(self, texts: Sequence[tuple[int, Job]], asked: Sequence[int]) -> None:
        """Read more of texts, one after the other, as many tokens as a step may have, and as many as fit the caches."""
        rows, slots, pieces = ROWS, [], []
        for slot, job in texts:
            begin = len(self.seen[slot])
            piece = job.ids[begin : min(begin + rows, job.n_tokens - 1)].tolist()
            if piece:
                slots.append(slot)
                pieces.append(piece)
                rows -= len(piece)
        try:
            if slots:
                self._read(slots, pieces, asked)
        except CacheFull:
            if len(slots) > 1:
                self._catch_up(texts[:1], asked)

    def _evict(self, asked: Sequence[int]) -> None:
        """The caches are full: forget the text of which least has been read."""
        held = [slot for slot in asked if self.seen[slot]]
        if held:
            self._keep(min(held, key=lambda slot: len(self.seen[slot])), 0)

    def _read(self, slots: Sequence[int], pieces: Sequence[list[int]], asked: Sequence[int]) -> list[Logits]:
        """Read a piece for each slot; if the caches are full, texts for which nothing is guessed make way."""
        every = [False] * len(slots)
        try:
            rows = self.caches.read(pieces, slots, every)
        except CacheFull:
            over = [slot for slot, seen in enumerate(self.seen) if seen and slot not in asked]
            if not over:
                raise
            for slot in over:
                self._keep(slot, 0)
            rows = self.caches.read(pieces, slots, every)
        for slot, piece in zip(slots, pieces, strict=True):
            self.seen[slot].extend(piece)
        return rows

    def _keep(self, slot: int, length: int) -> None:
        kept = self.caches.keep(slot, length)
        del self.seen[slot][kept:]


def allowed(request: Request, guesses: int) -> int:
    """How many guesses can be used: the token after the last one is drawn in any case"""
    return min(guesses, request.sampling.max_new_tokens - len(request.tokens) - 1)
