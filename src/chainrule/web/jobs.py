"""Work in threads, so that the page answers while a model computes: a job has progress, a result, and can be canceled.

A function that takes long calls `tell(text, fraction)` now and then; in a canceled job that call ends the function.
Long work of the library, which knows no `tell`, is `watched`; it costs short functions their time again.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, TimeoutError
from contextlib import contextmanager
from inspect import CO_GENERATOR
from itertools import count
from types import FrameType
from typing import Any

from chainrule.autograd.mode import unchanged
from chainrule.errors import ConfigError

Tell = Callable[[str, float | None], None]
KEPT = 50  # finished jobs that nobody asked for
ALIVE = 0.1  # seconds between signs of life of work that gives none itself
WORKERS = 8  # one that waits for a model must not hold up the rest of the page


def silent(said: str, fraction: float | None) -> None:
    """Where nobody listens."""


class Canceled(BaseException):
    """The job was canceled by the person who started it; no error, so that nothing on the way takes it for one."""


@contextmanager
def watched(tell: Tell, said: str) -> Iterator[None]:
    """Long work that gives no sign of life: calls of Python functions are signs, so it can be canceled nearly anywhere.

    It then ends as if by Ctrl-C, in this thread only, but not within what sets up or takes back.
    """
    due = 0.0

    def sign(frame: FrameType, event: str, _: Any) -> None:
        nonlocal due
        if event == "call" and (now := time.monotonic()) >= due and _may_end(frame):
            due = now + ALIVE
            tell(said, None)

    before = sys.getprofile()
    sys.setprofile(sign)
    try:
        yield
    finally:
        sys.setprofile(before)
    tell(said, None)  # the interpreter swallows what is raised where it frees an object


def _may_end(frame: FrameType | None) -> bool:
    """Whether an exception at the start of this call leaves everything as it was.

    Within `__exit__` something would stay switched. A generator may be about to be closed: the exception would be lost.
    """
    if frame is not None and frame.f_code.co_flags & CO_GENERATOR:
        return False
    while frame is not None:
        if frame.f_code.co_name in ("__enter__", "__exit__", "__del__"):
            return False
        frame = frame.f_back
    return True


class Job:
    """One piece of work, waiting, running or done."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.said, self.fraction = "waiting", None
        self._canceled = threading.Event()
        self.future: Future[Any] | None = None

    def tell(self, said: str, fraction: float | None = None) -> None:
        """Say how far it is; ends the job if it was canceled."""
        if self._canceled.is_set():
            raise Canceled
        self.said, self.fraction = said, fraction  # type: ignore[assignment]

    def cancel(self) -> None:
        """End it at its next sign of life."""
        self._canceled.set()
        if self.future:
            self.future.cancel()

    @property
    def canceled(self) -> bool:
        return self._canceled.is_set()

    @property
    def done(self) -> bool:
        return self.future is not None and self.future.done()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; whether it has come."""
        assert self.future is not None
        try:
            self.future.exception(seconds)
        except CancelledError:
            return True
        except TimeoutError:
            return False
        return True

    def result(self) -> Any:
        """What the function returned, or the error it raised."""
        assert self.future is not None
        try:
            return self.future.result(0)
        except CancelledError:
            raise Canceled from None


class Jobs:
    """The jobs of one server."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="studio")
        self._known: OrderedDict[str, Job] = OrderedDict()
        self._numbers = count(1)
        self._lock = threading.Lock()

    def start(self, function: Callable[[Tell], Any]) -> Job:
        """Run `function(tell)` as soon as a thread is free."""
        with self._lock:
            job = Job(str(next(self._numbers)))
            self._known[job.id] = job
            finished = [each for each in self._known.values() if each.done]
            for old in finished[: max(0, len(finished) - KEPT)]:
                del self._known[old.id]

        def work() -> Any:
            with unchanged():
                try:
                    job.tell("working")
                    return function(job.tell)
                except Canceled:
                    pass  # and with it all that was begun, in this thread
            raise Canceled

        job.future = self._pool.submit(work)
        return job

    def get(self, id: str) -> Job:
        """A job that was started and whose result nobody has taken."""
        job = self._known.get(id)
        if job is None:
            raise ConfigError(f"job {id[:20]}: not known (it is done, or the Studio was started anew)")
        return job

    def take(self, job: Job) -> Any:
        """The result of a finished job, which is then forgotten."""
        with self._lock:
            self._known.pop(job.id, None)
        return job.result()

    def close(self) -> None:
        """Cancel everything."""
        for job in list(self._known.values()):
            job.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
