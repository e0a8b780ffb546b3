"""Turns: jobs that wait. Requests take turns, so that one that asks for many texts lets others in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from chainrule.serve.batching.job import Job


class Turns:
    """Jobs by request; the request whose turn it is stands first."""

    def __init__(self) -> None:
        self._requests: deque[deque[Job]] = deque()
        self._jobs = 0  # counted here: other threads ask for it while this one changes

    def __len__(self) -> int:
        return self._jobs

    def add(self, jobs: Sequence[Job]) -> None:
        """The jobs of one request."""
        if jobs:
            self._requests.append(deque(jobs))
            self._jobs += len(jobs)

    def add_first(self, job: Job) -> None:
        """One that had its turn already."""
        self._requests.appendleft(deque([job]))
        self._jobs += 1

    @property
    def first(self) -> Job | None:
        """The job whose turn it is."""
        return self._requests[0][0] if self._requests else None

    def remove(self, job: Job) -> bool:
        """Take a job out; the next turn is another request's -> whether it was there"""
        jobs = next((jobs for jobs in self._requests if job in jobs), None)
        if jobs is None:
            return False
        was_first = jobs is self._requests[0] and jobs[0] is job
        jobs.remove(job)
        self._jobs -= 1
        if was_first:
            self._requests.rotate(-1)
        if not jobs:
            self._requests.remove(jobs)
        return True

    def clear(self) -> list[Job]:
        """Take all of them out."""
        found = [job for jobs in self._requests for job in jobs]
        self._requests.clear()
        self._jobs = 0
        return found
