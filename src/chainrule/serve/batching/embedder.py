"""Vectors of texts, a batch in each step, so that models that write are not kept waiting."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.generate.embedding import Vectors, embed_ids
from chainrule.models import Model
from chainrule.serve.batching.job import Full
from chainrule.text import Tokenizer
from chainrule.types import Ids

BATCH = 8  # texts in a step


class EmbeddingJob:
    """Texts as ids, and where their vectors (N, C) go, or the error."""

    def __init__(self, rows: list[Ids], tell: Callable[[Vectors | Exception], None]) -> None:
        self.rows = rows
        self.tell = tell
        self.cancelled = False
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

    def submit(self, job: EmbeddingJob) -> None:
        with self._lock:
            if len(self._jobs) > self.queue:
                rule = f"must be at most {self.queue}: try again later"
                raise Full(f"serve: {self.waiting} requests waiting, 1 more ({rule})")
            self._jobs.append(job)

    def cancel(self, job: EmbeddingJob) -> None:
        """Nobody waits for it any more."""
        job.cancelled = True

    def step(self) -> None:
        """Some texts of the first job."""
        job = self._jobs[0]
        done = len(job.vectors)
        if job.cancelled:
            self._jobs.popleft()
            return
        try:
            job.vectors.extend(embed_ids(self.model, self.tokenizer, job.rows[done : done + BATCH]))
        except Exception as error:
            self._jobs.popleft()
            job.tell(error)
            return
        if len(job.vectors) == len(job.rows):
            self._jobs.popleft()
            job.tell(np.array(job.vectors))

    def fail(self, error: Exception) -> None:
        """End everything."""
        while self._jobs:
            self._jobs.popleft().tell(error)
