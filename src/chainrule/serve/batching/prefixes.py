"""Prefixes: what slots hold of a text already, so that a beginning that several texts share is read once.

A text that begins shares what a cache holds of it. If a slot is just reading the same beginning, the text waits until
that slot has read it, and shares it then. Texts are compared when they begin, and not in each step.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from chainrule.serve.batching.caches import Caches
from chainrule.serve.batching.job import Job

LEAST_SHARED = 16  # tokens of a prompt that are worth copying from the cache of another slot


class Leader(NamedTuple):
    """A slot that is reading what another one waits for."""

    slot: Slot
    job: Job
    shared: int
    """Tokens that the two texts have in common."""


def _no_tokens() -> array[int]:
    return array("i")


@dataclass(eq=False)
class Slot:
    """A place for one text."""

    number: int
    seen: array[int] = field(default_factory=_no_tokens)
    """What its cache holds."""
    job: Job | None = None
    used: int = 0
    """The step in which it was used last."""
    since: int = 0
    """The place of its job in the order in which they began."""
    leader: Leader | None = None

    def ahead(self, count: int) -> list[int]:
        """The next tokens, at most so many, that its job has still to read."""
        if self.job is None:
            return []
        return self.job.ids[len(self.seen) : len(self.seen) + count].tolist()

    @property
    def pending(self) -> int:
        """How many tokens it has still to read."""
        return self.job.n_tokens - len(self.seen) if self.job is not None else 0


class Prefixes:
    """Finds and shares what slots hold."""

    def __init__(self, caches: Caches, slots: Sequence[Slot]) -> None:
        self.caches = caches
        self.slots = slots

    def best(self, free: Sequence[Slot], job: Job) -> Slot:
        """The slot whose cache holds most of the prompt; of equal ones that which was not used for longest."""
        return max(free, key=lambda slot: (self._held(slot, job), -slot.used))

    def begin(self, slot: Slot, job: Job) -> None:
        """Keep what the slot holds of the text, copy it from a slot that holds more, or follow one that will."""
        held = self._held(slot, job)
        more, source = max(
            ((self._held(other, job), other) for other in self.slots), key=lambda found: found[0]
        )
        if more >= held + LEAST_SHARED:
            self.caches.copy(source.number, slot.number)
            slot.seen, held = source.seen[:], more
        kept = self.caches.keep(slot.number, held)
        del slot.seen[kept:]
        job.reused = min(kept, len(job.request.prompt))
        slot.leader = self._leader(slot, job)

    def waits(self, slot: Slot) -> bool:
        """Another slot is still reading what this one is going to share."""
        if slot.leader is None or slot.job is None:
            return False
        leader, job, shared = slot.leader
        if leader.job is job and len(leader.seen) < shared:
            return True
        self.begin(slot, slot.job)
        return slot.leader is not None

    def _held(self, slot: Slot, job: Job) -> int:
        """How much of a job's text the cache of a slot holds and can go back to

        Something is left to read, since logits are not kept; all of it if each row is wanted.
        """
        if job.scores_prompt:
            return 0
        held = min(common(slot.seen, job.ids), job.n_tokens - 1)
        return held if self.caches.rewinds or held == len(slot.seen) else 0

    def _leader(self, slot: Slot, job: Job) -> Leader | None:
        """Of the slots that began before this one that which is reading most of the same text, if it is worth it."""
        if job.scores_prompt or not self.caches.rewinds:
            return None
        earlier = (other for other in self.slots if other.since < slot.since and other.pending > 1)
        found = [
            Leader(other, other.job, min(common(other.job.ids, job.ids), job.n_tokens - 1))
            for other in earlier
            if other.job is not None
        ]
        best = max(found, key=lambda leader: leader.shared, default=None)
        return best if best is not None and best.shared >= len(slot.seen) + LEAST_SHARED else None


def common(a: array[int], b: array[int]) -> int:
    """How many tokens two texts have in common at their beginnings"""
    n = min(len(a), len(b))
    if n == 0 or a[0] != b[0]:
        return 0
    differ = np.asarray(a)[:n] != np.asarray(b)[:n]
    first = int(differ.argmax())
    return first if differ[first] else n
