"""Batcher: each step reads one token of every text that is being written, and chunks of the prompts that wait.

A request gives the same tokens alone and in any company: its draws depend on (seed, position) alone, and a row of
logits has the same bits whether a text is read at once or in pieces, alone or beside others
(`generate.engine.decoder`). So chunks, reuse of caches and drafts change how fast a text comes, and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count

from chainrule.errors import CacheFull, DataError
from chainrule.generate.processors import Logits
from chainrule.serve.batching.caches import Caches
from chainrule.serve.batching.drafts import Drafter
from chainrule.serve.batching.job import Full, Job, Update
from chainrule.serve.batching.prefixes import Prefixes, Slot
from chainrule.serve.batching.turns import Turns
from chainrule.serve.batching.writing import Counters, Writing, wants_every

ROWS = 64  # tokens of prompts in a step while texts are being written: what a stream waits for at most
ROWS_ALONE = 256  # while none is


class Batcher:
    """Jobs in slots, and a queue of those that wait for one. `submit` and `cancel` may be called by any thread."""

    def __init__(self, caches: Caches, queue: int = 64, drafter: Drafter | None = None) -> None:
        self.caches = caches
        self.queue = queue
        self.drafter = drafter
        self.counters = Counters()
        self.pages = 0
        """Of the KV cache that were in use after the last step, also by texts that have ended and may be continued."""
        self._slots = [Slot(i) for i in range(caches.slots)]
        self._prefixes = Prefixes(caches, self._slots)
        self._writing = Writing(caches, self.counters)
        self._waiting = Turns()
        self._order = count()  # of jobs, as they get a slot
        self._tight = False  # a job gave up its cache and waits for another to end
        self._lock = threading.Lock()

    # -- for any thread ------------------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """Jobs at most, at work and waiting."""
        return len(self._slots) + self.queue

    @property
    def most_jobs(self) -> int:
        """Of one request: half of the queue is left to others."""
        return self.capacity - self.queue // 2

    @property
    def running(self) -> int:
        return sum(slot.job is not None for slot in self._slots)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def busy(self) -> bool:
        return bool(self._waiting) or self.running > 0

    def check_capacity(self, jobs: int) -> None:
        """Refuse more jobs than fit now."""
        if self.running + self.waiting + jobs > self.capacity:
            raise Full(
                f"serve: {self.running} requests at work and {self.waiting} waiting, {jobs} more "
                f"(must be at most {self.capacity}: try again later)"
            )

    def submit(self, jobs: Sequence[Job]) -> None:
        """All jobs of a request, or none of them if they do not fit."""
        most = max((job.most_tokens for job in jobs), default=0)
        if self.caches.context is not None and most > self.caches.context:
            rule = f"must be at most {self.caches.context:,}: what the model and the memory of caches allow"
            raise DataError(f"serve: a text of {most:,} tokens ({rule})")
        with self._lock:
            self.check_capacity(len(jobs))
            self._waiting.add(jobs)

    def cancel(self, job: Job) -> None:
        """Its text is no longer wanted: it leaves the queue now, or its slot before the next step."""
        with self._lock:
            job.cancelled = True
            self._waiting.remove(job)

    # -- for the thread that works -------------------------------------------------------------------------

    def step(self) -> None:
        """Read once, for all."""
        self.counters.steps += 1
        self._admit()
        if pieces := self._pieces():
            self._read(list(pieces), list(pieces.values()))
        self._count_pages()

    def fail(self, error: Exception) -> None:
        """End everything."""
        with self._lock:
            jobs = self._waiting.clear()
        for slot in self._slots:
            if slot.job is not None:
                jobs.append(slot.job)
                slot.job = None
            self._forget(slot)
        self._count_pages()
        for job in jobs:
            job.tell(Update(error=error))

    def _count_pages(self) -> None:
        self.pages = self.caches.pages + (self.drafter.pages if self.drafter else 0)

    def _admit(self) -> None:
        """Let cancelled jobs leave, and give free slots to those whose turn it is."""
        for slot in self._slots:
            if slot.job is not None and slot.job.cancelled:
                slot.job, self._tight = None, False
        while free := [slot for slot in self._slots if slot.job is None]:
            with self._lock:
                job = None if self._tight and self.running else self._waiting.first
            if job is None:
                return
            slot = self._prefixes.best(free, job)  # without the lock: others submit meanwhile
            with self._lock:
                if not self._waiting.remove(job):
                    continue  # it was cancelled
                slot.job, slot.since = job, next(self._order)
            if job.reads_prompt:
                self._prefixes.begin(slot, job)
            else:  # it wants no token
                self._end(slot, Update(finish=job.request.finish))

    def _pieces(self) -> dict[Slot, list[int]]:
        """The tokens that each slot reads next: of a text its newest, and of prompts equal parts of the rows."""
        busy = [(slot, slot.job) for slot in self._slots if slot.job is not None]
        writing = [slot for slot, job in busy if slot.pending <= 1 and not job.scores_prompt]
        reading = [slot for slot, job in busy if slot.pending > 1 or job.scores_prompt]
        found = {
            slot: slot.ahead(1) + guess for slot, guess in zip(writing, self._guesses(writing), strict=True)
        }
        rows = ROWS if writing or any(job.scores_prompt for _, job in busy) else ROWS_ALONE
        now = [slot for slot in reading if not self._prefixes.waits(slot)]
        return found | {slot: slot.ahead(max(1, rows // len(now))) for slot in now}

    def _guesses(self, slots: Sequence[Slot]) -> list[list[int]]:
        """Tokens that may follow each text, to be read together with its newest one."""
        if self.drafter is None or not slots:
            return [[] for _ in slots]
        asked = [(slot.number, slot.job) for slot in slots if slot.job is not None]
        found = self.drafter.guess(asked)
        self.counters.drafted += sum(map(len, found))
        return found

    def _read(self, slots: Sequence[Slot], pieces: Sequence[list[int]]) -> None:
        """Read a piece for each slot and let its job advance. If that fails, each alone: one harms no other."""
        every = [wants_every(slot, piece) for slot, piece in zip(slots, pieces, strict=True)]
        try:
            rows = self.caches.read(pieces, [slot.number for slot in slots], every)
        except CacheFull as error:
            self._evict(error)
            return
        except Exception as error:
            for slot in slots:
                self._retry(slot, error if len(slots) == 1 else None)
            return
        for slot, piece, logits in zip(slots, pieces, rows, strict=True):
            self._advance(slot, piece, logits)

    def _evict(self, error: CacheFull) -> None:
        """The caches are full: forget a text that is over, or let the job that came last wait until another ends."""
        over = [slot for slot in self._slots if slot.job is None and slot.seen]
        if over:
            self._forget(min(over, key=lambda slot: slot.used))
            return
        last = max((slot for slot in self._slots if slot.job is not None), key=lambda slot: slot.since)
        job = last.job
        assert job is not None
        if self.running == 1:
            self._end(last, Update(error=error))
        else:
            if job.scores_prompt:
                job.prompt_scores.clear()
            with self._lock:
                last.job, self._tight = None, True
                if not job.cancelled:
                    self._waiting.add_first(job)
        self._forget(last)

    def _retry(self, slot: Slot, error: Exception | None) -> None:
        """After a failed step a cache may hold anything: read the text again from its beginning, alone."""
        job = slot.job
        assert job is not None
        self._forget(slot)
        if error is None:
            try:
                if job.scores_prompt:
                    job.prompt_scores.clear()
                known = job.n_tokens
                while len(slot.seen) < known and slot.job is not None:
                    piece = slot.ahead(ROWS)
                    rows = self.caches.read([piece], [slot.number], [wants_every(slot, piece)])
                    self._advance(slot, piece, rows[0])
                return
            except Exception as alone:
                error = alone
        self._end(slot, Update(error=error))
        self._forget(slot)

    def _advance(self, slot: Slot, piece: list[int], logits: Logits) -> None:
        """A slot has read a piece: tell its job what is new, or that it has ended."""
        update = self._writing.advance(slot, piece, logits)
        if update is not None and update.last:
            self._end(slot, update)
        elif update is not None and slot.job is not None:
            slot.job.tell(update)

    def _end(self, slot: Slot, update: Update) -> None:
        job, slot.job, self._tight = slot.job, None, False
        if job is not None:
            self.counters.reused_tokens += job.reused
            job.tell(update)

    def _forget(self, slot: Slot) -> None:
        self.caches.keep(slot.number, 0)
        del slot.seen[:]
        slot.leader = None
