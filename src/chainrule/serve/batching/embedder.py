"""Vectors of texts, a batch in each step, so that models that write are not kept waiting."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.models import Model
from chainrule.serve.batching.job import Full
from chainrule.text import Tokenizer
from chainrule.types import Ids

if TYPE_CHECKING:
    from chainrule.generate.embedding import Vectors

TOKENS = 256  # in a step, or one text: what streams of other models wait for at most
SPECIAL = 2  # [CLS] and [SEP]


class EmbeddingJob:
    """Texts as ids, and where their vectors (N, C) go, or the error."""

    def __init__(self, rows: list[Ids], tell: Callable[[Vectors | Exception], None]) -> None:
        self.rows = rows
        self.tell = tell
        self.vectors: list[Any] = []


class Embedder:
    """Jobs one after the other, in steps of a few texts; at most `queue` of them wait."""

    def __init__(self, model: Model, tokenizer: Tokenizer, queue: int = 64) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.queue = queue
        self._jobs: deque[EmbeddingJob] = deque()
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    @property
    def running(self) -> int:
        return min(1, len(self._jobs))

    @property
    def waiting(self) -> int:
        return max(0, len(self._jobs) - 1)

    def check_capacity(self) -> None:
        """Refuse one more job if it does not fit now."""
        if len(self._jobs) > self.queue:
            rule = f"must be at most {self.queue}: try again later"
            raise Full(f"serve: {self.waiting} requests waiting, 1 more ({rule})")

    def submit(self, job: EmbeddingJob) -> None:
        with self._lock:
            self.check_capacity()
            self._jobs.append(job)

    def cancel(self, job: EmbeddingJob) -> None:
        """Its vectors are no longer wanted: it gives up its place."""
        with self._lock:
            if job in self._jobs:
                self._jobs.remove(job)

    def step(self) -> None:
        """Some texts of the first job."""
        with self._lock:
            job = self._jobs[0] if self._jobs else None
        if job is None:
            return
        from chainrule.generate.embedding import embed_ids  # here: it brings much that no other server needs

        try:
            job.vectors.extend(embed_ids(self.model, self.tokenizer, self._batch(job)))
        except Exception as error:
            self._end(job, error)
            return
        if len(job.vectors) == len(job.rows):
            self._end(job, np.array(job.vectors))

    def _batch(self, job: EmbeddingJob) -> list[Ids]:
        """The next texts: as many as are short, with their padding, and one in any case."""
        rows, longest = job.rows[len(job.vectors) :], 0
        for count, row in enumerate(rows):
            longest = max(longest, len(row) + SPECIAL)
            if count and longest * (count + 1) > TOKENS:
                return rows[:count]
        return rows

    def _end(self, job: EmbeddingJob, found: Vectors | Exception) -> None:
        with self._lock:
            if job not in self._jobs:
                return  # it was cancelled
            self._jobs.remove(job)
        job.tell(found)

    def fail(self, error: Exception) -> None:
        """End everything."""
        with self._lock:
            jobs = list(self._jobs)
            self._jobs.clear()
        for job in jobs:
            job.tell(error)
