"""The thread that works: what fails ends its jobs, and nothing ends the thread."""

from __future__ import annotations

import threading

from chainrule.serve.batching import Worker


class Failing:
    """A station whose first step fails."""

    def __init__(self) -> None:
        self.steps = 0
        self.told: list[Exception] = []
        self.done = threading.Event()

    @property
    def busy(self) -> bool:
        return self.steps < 2

    def step(self) -> None:
        self.steps += 1
        if self.steps == 1:
            raise FloatingPointError("bad")
        self.done.set()

    def fail(self, error: Exception) -> None:
        self.told.append(error)


def test_jobs_are_told_and_the_thread_goes_on_though_the_log_is_gone() -> None:
    station = Failing()

    def report(error: Exception) -> None:
        raise BrokenPipeError

    worker = Worker([station], report)
    worker.wake()
    assert station.done.wait(10) and worker.alive
    assert [str(error) for error in station.told] == ["bad"]
    worker.close()
    assert not worker.alive
