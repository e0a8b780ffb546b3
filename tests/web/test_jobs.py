"""Work in threads: progress, results, errors, and canceling."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.autograd.mode import mode
from chainrule.errors import ConfigError
from chainrule.web import jobs as room
from chainrule.web.calculus import ops
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


class Freed:
    """The interpreter frees it, and swallows what is raised meanwhile."""

    def __del__(self) -> None:
        self.last()

    def last(self) -> None:
        """One more call."""


@contextmanager
def borrowed(open: list[int]) -> Iterator[None]:
    def give_back() -> None:
        open.pop()

    open.append(1)
    try:
        yield
    finally:
        give_back()


def half_read(open: list[int]) -> Iterator[int]:
    try:
        yield from (1, 2)
    finally:
        open.clear()


def mixed(open: list[int]) -> None:
    """What the library does while it computes, and takes for failures."""
    for _ in range(3):
        with cr.no_grad(), borrowed(open):
            try:
                Freed()
            except Exception:
                raise AssertionError("a cancel is no error") from None
        next(half_read(open))


def canceled_at(sign: int, work: Any, jobs: Jobs) -> bool:
    """Whether work that is watched in a job gives that many signs, and so was canceled there."""
    left = sign

    def begin(tell: Tell) -> None:
        def counting(said: str, fraction: float | None) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                job.cancel()
            tell(said, fraction)

        with watched(counting, "working"):
            work()

    ready = threading.Event()
    job = jobs.start(lambda tell: ready.wait(5) and begin(tell))
    ready.set()
    assert job.wait(10)
    try:
        jobs.take(job)
    except Canceled:
        return True
    assert left > 0, f"the cancel at sign {sign} was lost"
    return False


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Hypothesis is called by the collector of garbage, at any time, and what is raised there is lost."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_wherever_it_is_canceled_everything_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ALIVE", 0.0)  # every call is a sign
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    open: list[int] = []
    jobs, sign = Jobs(workers=1), 1
    while canceled_at(sign, lambda: mixed(open), jobs):
        after = jobs.start(lambda tell: mode.grad)
        assert after.wait(5) and jobs.take(after), f"no gradients after a cancel at sign {sign}"
        assert not open and not ignored, f"canceled at sign {sign}"
        sign += 1
    assert sign > 10
    jobs.close()


@pytest.mark.usefixtures("no_collector")
def test_a_check_of_gradients_is_canceled_at_any_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ALIVE", 0.0)
    jobs, sign = Jobs(workers=1), 1

    def state() -> dict[str, Any]:
        return dict(vars(mode))

    first = jobs.start(lambda tell: state())
    assert first.wait(5)
    usual = jobs.take(first)
    seen: list[dict[str, Any]] = []

    def work() -> None:
        try:
            ops.checked("tanh")
        finally:  # before the job itself sets it back
            seen.append(state())

    while canceled_at(sign, work, jobs):
        sign += 23
    assert sign > 500 and all(each == usual for each in seen)
    jobs.close()


def test_a_job_leaves_the_mode_of_its_thread_as_it_was() -> None:
    def broken(tell: Tell) -> None:
        mode.grad = False
        raise ConfigError("no")

    jobs = Jobs(workers=1)
    assert jobs.start(broken).wait(5)
    after = jobs.start(lambda tell: mode.grad)
    assert after.wait(5) and jobs.take(after)
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
                max(1, 2, key=lambda x: -x)  # the library calls functions
        finally:
            ended.set()

    monkeypatch.setattr(function, endless)
    answer = client.get(path)
    assert answer.status_code == 202 and answer.json()["said"] != "waiting"
    address = f"/api/jobs/{answer.json()['job']}"
    client.delete(address, headers={"Content-Type": "application/json"})
    assert ended.wait(5)
    assert client.get(address).json() == {"canceled": True}
