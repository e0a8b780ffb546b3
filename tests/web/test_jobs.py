"""Work in threads: progress, results, errors, and canceling."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from chainrule.errors import ConfigError
from chainrule.web.jobs import KEPT, Canceled, Jobs, Tell, watched


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


def test_work_without_a_sign_of_life_is_canceled_where_it_is() -> None:
    began, ended = threading.Event(), threading.Event()

    def endless(tell: Tell) -> None:
        def step() -> None:
            began.set()

        try:
            with watched(tell, "counting"):
                while True:
                    step()
        finally:
            ended.set()

    jobs = Jobs(workers=1)
    job = jobs.start(endless)
    assert began.wait(5) and job.said == "counting" and not ended.is_set()
    job.cancel()
    assert job.wait(5) and ended.is_set()
    with pytest.raises(Canceled):
        jobs.take(job)
    after = jobs.start(lambda tell: sys.getprofile())  # the thread is as it was
    assert after.wait(5) and jobs.take(after) is None
    jobs.close()


@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("/api/ngrams", "chainrule.web.lab.ngrams.counted"),
        ("/api/figures/heads", "chainrule.web.lessons.figures.drawn"),
        ("/api/runs/one/doctor", "chainrule.cli.commands.doctor.of_run"),
    ],
)
def test_views_that_compute_long_can_be_canceled(
    client: TestClient, runs: Path, monkeypatch: pytest.MonkeyPatch, path: str, function: str
) -> None:
    ended = threading.Event()

    def endless(*given: object) -> None:
        try:
            while True:
                str.join("", map(str, (x for x in (1, 2))))  # a generator is a call
        finally:
            ended.set()

    monkeypatch.setattr(function, endless)
    answer = client.get(path)
    assert answer.status_code == 202 and answer.json()["said"] != "waiting"
    address = f"/api/jobs/{answer.json()['job']}"
    client.delete(address, headers={"Content-Type": "application/json"})
    assert ended.wait(5)
    assert client.get(address).json() == {"canceled": True}
