"""Work in threads: progress, results, errors, and canceling."""

from __future__ import annotations

import threading

import pytest

from chainrule.errors import ConfigError
from chainrule.web.jobs import KEPT, Canceled, Jobs, Tell


def test_a_result_is_taken_once() -> None:
    jobs = Jobs()
    job = jobs.start(lambda tell: 6 * 7)
    assert job.wait(5) and jobs.get(job.id) is job
    assert jobs.take(job) == 42
    with pytest.raises(ConfigError, match=f"job {job.id}: not known"):
        jobs.get(job.id)
    jobs.close()


def test_an_error_arrives_where_the_result_is_taken() -> None:
    def fail(tell: Tell) -> None:
        raise ConfigError("no")

    jobs = Jobs()
    job = jobs.start(fail)
    assert job.wait(5)
    with pytest.raises(ConfigError, match="no"):
        jobs.take(job)
    jobs.close()


def test_progress_is_told_and_canceling_ends_the_work() -> None:
    told, go = threading.Event(), threading.Event()

    def work(tell: Tell) -> None:
        tell("half", 0.5)
        told.set()
        go.wait(5)
        tell("whole", 1.0)
        raise AssertionError("it goes on")

    jobs = Jobs(workers=1)
    job = jobs.start(work)
    behind = jobs.start(lambda tell: 1)
    assert told.wait(5) and not job.wait(0)
    assert (job.said, job.fraction) == ("half", 0.5)
    behind.cancel()  # before it began
    job.cancel()
    go.set()
    assert job.wait(5) and behind.wait(5)
    for each in (job, behind):
        with pytest.raises(Canceled):
            jobs.take(each)
    jobs.close()


def test_results_that_nobody_takes_are_forgotten() -> None:
    jobs = Jobs()
    started = [jobs.start(lambda tell: 0) for _ in range(KEPT + 20)]
    assert all(job.wait(5) for job in started)
    jobs.start(lambda tell: 0)
    with pytest.raises(ConfigError):
        jobs.get(started[0].id)
    jobs.get(started[-1].id)
    jobs.close()
