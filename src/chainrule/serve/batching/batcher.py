"""Batcher: each step reads one token of every text that is being written, and chunks of the prompts that wait.

A request gives the same tokens alone and in any company: its draws depend on (seed, position) alone, and a row of
logits has the same bits whether a text is read at once or in pieces, alone or beside others
(`generate.engine.decoder`). So chunks, reuse of caches and drafts change how fast a text comes, and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from chainrule.errors import CacheFull, DataError
from chainrule.generate.processors import Logits
from chainrule.generate.requests import token_score
from chainrule.serve.batching.caches import Caches
from chainrule.serve.batching.drafts import Drafter
from chainrule.serve.batching.job import Full, Job, Update
from chainrule.serve.batching.prefixes import Prefixes, Slot
from chainrule.serve.batching.turns import Turns

ROWS = 64  # tokens of prompts in a step while texts are being written: what a stream waits for at most
ROWS_ALONE = 256  # while none is


@dataclass
class Counters:
    """What a batcher has done so far."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0


class Batcher:
    """Jobs in slots, and a queue of those that wait for one. `submit` and `cancel` may be called by any thread."""

    def __init__(self, caches: Caches, queue: int = 64, drafter: Drafter | None = None) -> None:
        self.caches = caches
        self.queue = queue
        self.drafter = drafter
        self.counters = Counters()
        self._slots = [Slot(i) for i in range(caches.slots)]
        self._prefixes = Prefixes(caches, self._slots)
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

    def fail(self, error: Exception) -> None:
        """End everything."""
        with self._lock:
            jobs = self._waiting.clear()
        for slot in self._slots:
            if slot.job is not None:
                jobs.append(slot.job)
                slot.job = None
            self._forget(slot)
        for job in jobs:
            job.tell(Update(error=error))

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
        every = [_wants_every(slot, piece) for slot, piece in zip(slots, pieces, strict=True)]
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
                    rows = self.caches.read([piece], [slot.number], [_wants_every(slot, piece)])
                    self._advance(slot, piece, rows[0])
                return
            except Exception as alone:
                error = alone
        self._end(slot, Update(error=error))
        self._forget(slot)

    def _advance(self, slot: Slot, piece: list[int], logits: Logits) -> None:
        """A slot has read a piece: score a prompt, write what follows it, see how many guesses were right."""
        job = slot.job
        assert job is not None
        slot.used = self.counters.steps
        before, known = len(slot.seen), job.n_tokens
        slot.seen.extend(piece)
        if job.cancelled:
            return
        if job.scores_prompt:
            self._score(job, before, piece, logits)
        self.counters.prompt_tokens += max(0, min(len(slot.seen), len(job.request.prompt)) - before)
        if len(slot.seen) < known:
            return
        if job.request.finish:  # the prompt was to be scored, and nothing else
            self._end(slot, Update(prompt_scores=tuple(job.prompt_scores), finish=job.request.finish))
            return
        try:
            self._write(slot, job, logits[len(logits) - (len(slot.seen) - known) - 1 :], known)
        except Exception as error:
            self._end(slot, Update(error=error))

    def _score(self, job: Job, before: int, piece: list[int], logits: Logits) -> None:
        prompt, top = job.request.prompt, job.top_of_prompt or 0
        for place, row in zip(range(before + 1, len(prompt)), logits, strict=False):
            job.prompt_scores.append(token_score(row, prompt[place], top))

    def _write(self, slot: Slot, job: Job, rows: Logits, known: int) -> None:
        """Advance by the first row, and by each that follows as long as the guess before it was right."""
        request, guesses = job.request, slot.seen[known:]
        first, right, pieces = len(request.tokens), 0, []
        for row, guess in zip(rows, [*guesses, None], strict=True):
            request.advance(row)
            pieces.append(request.piece)
            if request.finish or request.tokens[-1] != guess:
                break
            right += 1
        self.counters.accepted += right
        self.counters.tokens += len(request.tokens) - first
        if guesses:
            kept = self.caches.keep(slot.number, known + right)
            del slot.seen[kept:]
        update = Update(
            piece="".join(pieces),
            tokens=tuple(request.tokens[first:]),
            scores=tuple((request.scores or [])[first:]),
            prompt_scores=tuple(job.prompt_scores) if first == 0 else (),
            finish=request.finish,
        )
        if update.last:
            self._end(slot, update)
        else:
            job.tell(update)

    def _end(self, slot: Slot, update: Update) -> None:
        job, slot.job, self._tight = slot.job, None, False
        if job is not None:
            self.counters.reused_tokens += job.reused
            job.tell(update)

    def _forget(self, slot: Slot) -> None:
        self.caches.keep(slot.number, 0)
        del slot.seen[:]
        slot.leader = None


def _wants_every(slot: Slot, piece: Sequence[int]) -> bool:
    """Logits after each token of the piece are needed: a prompt is scored, or guesses are checked."""
    job = slot.job
    return job is not None and (job.scores_prompt or len(slot.seen) + len(piece) > job.n_tokens)
