"""Independent items, worked on by several processes or ranks: the results do not depend on how many there are.

    each(work, items, workers)         outcomes as they end: a failure is one of them, the others continue
    in_order(work, items, workers)     results in the order of the items: they make up one whole, which a failure ends

A failed item is tried once more. Workers are processes of this machine; under `mpiexec` they are the ranks, of which
the first hands out the items.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chainrule import native
from chainrule.distributed.communicator import MPICommunicator, apart, everyone
from chainrule.errors import ChainruleError, ConfigError, DataError, Failure

T = TypeVar("T")
TRIES = 2
AHEAD = 3  # items under way for each worker: enough to keep it busy, few enough for memory
TROUBLE = (ChainruleError, OSError, MemoryError, ValueError)  # of an item, not of the program
GRACE = 30.0  # seconds for an item to save itself when the process that handed it out is gone
DIED = "the process that worked on it has died (it may need less memory at a time)"


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of an item: a result, or the error of its last try."""

    number: int
    result: T | None
    error: str = ""
    failure: bool = False
    """The work failed; otherwise what was asked for was wrong."""


def each(work: Callable[[Any], T], items: Sequence[Any], workers: int = 1) -> Iterator[Outcome[T]]:
    """work(item) for every item, in the order in which they end; with one worker here, else in processes

    `work` is a function of a module. The processes share the machine's threads.
    """
    if alone(workers):
        yield from (_attempt(work, number, item) for number, item in enumerate(items))
        return
    with _Pool(workers) as pool:
        futures = {pool.submit(work, number, item): (number, item) for number, item in enumerate(items)}
        for future in as_completed(futures):
            yield pool.outcome(work, *futures[future], future)


def in_order(work: Callable[[Any], T], items: Iterable[Any], workers: int = 1) -> Iterator[T]:
    """work(item) for every item, in the order of the items, a few of which are read ahead."""
    if alone(workers):
        for item in items:
            try:
                found = work(item)
            except TROUBLE:
                found = work(item)
            yield found
        return
    with _Pool(workers) as pool:
        waiting: deque[tuple[int, Any, Future[Outcome[T]]]] = deque()
        for number, item in enumerate(items):
            waiting.append((number, item, pool.submit(work, number, item)))
            if len(waiting) >= AHEAD * pool.size:
                yield _result(pool.outcome(work, *waiting.popleft()))
        while waiting:
            yield _result(pool.outcome(work, *waiting.popleft()))


def alone(workers: int) -> bool:
    """Is the work done in this process?"""
    if workers < 1:
        raise ConfigError.of("workers", {"workers": workers}, "must be at least 1")
    return workers == 1 and not _ranks


@contextmanager
def ranks_as_workers() -> Iterator[bool]:
    """In here the first rank hands out work to the others, which do nothing else; True for the first."""
    if not isinstance(ranks := everyone(), MPICommunicator):
        yield True
        return
    from mpi4py.futures import MPICommExecutor

    if not ranks.first:  # `mpiexec` sends Ctrl-C to all: here it ends the item at hand
        signal.signal(signal.SIGINT, lambda *_: _stopping.set())
    with apart(), MPICommExecutor(ranks.comm, root=0) as opened:
        pool: Any = opened
        if pool is None:
            yield False
            return
        _ranks.append(pool)
        try:
            yield True
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            _ranks.remove(pool)


_ranks: list[Any] = []  # the executor of MPI, where there is one


def _result(outcome: Outcome[T]) -> T:
    if outcome.error:
        raise (Failure if outcome.failure else DataError)(outcome.error)
    return outcome.result  # type: ignore[return-value]  # what `work` returned


def _attempt(work: Callable[[Any], T], number: int, item: Any) -> Outcome[T]:
    """The item, worked on here; an error is told in words, which can be sent between processes."""
    for attempt in range(TRIES):
        try:
            return Outcome(number, work(item))
        except TROUBLE as error:
            if attempt + 1 == TRIES:
                failure = isinstance(error, Failure) or not isinstance(error, ChainruleError)
                return Outcome(number, None, str(error) or type(error).__name__, failure)
    raise AssertionError("a try ends with a result or an error")


class _Pool:
    """Processes of this machine, or the ranks of MPI."""

    def __init__(self, workers: int) -> None:
        self.size = workers
        self.executor: Any = None
        self.ranks = _ranks[-1] if _ranks else None
        self.context = multiprocessing.get_context("spawn")
        self.workers_end, self.our_end = self.context.Pipe(duplex=False)

    def __enter__(self) -> _Pool:
        if self.ranks is None:
            self._open()
        else:
            self.executor, self.size = self.ranks, max(1, self.ranks.num_workers)
        return self

    def _open(self) -> None:
        threads = max(1, native.get_threads() // self.size)
        told = threads, os.getpid(), self.workers_end
        self.executor = ProcessPoolExecutor(self.size, self.context, initializer=_begin, initargs=told)

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:  # such as Ctrl-C: what has begun may save itself, nothing else begins
            self.our_end.close()
        if self.ranks is None:  # ranks serve the whole command; Ctrl-C is for `mpiexec`, which ends them
            self.executor.shutdown(wait=True, cancel_futures=True)
        self.our_end.close()
        self.workers_end.close()

    def submit(self, work: Callable[[Any], T], number: int, item: Any) -> Future[Outcome[T]]:
        try:
            return self.executor.submit(_interruptible, work, number, item)
        except BrokenProcessPool:
            self._open()
            return self.executor.submit(_interruptible, work, number, item)

    def outcome(
        self, work: Callable[[Any], T], number: int, item: Any, future: Future[Outcome[T]]
    ) -> Outcome[T]:
        """Of an item that was submitted, when it is there."""
        try:
            return future.result()
        except BrokenProcessPool:  # a process has died: which item it was working on is not known
            return self._by_itself(work, number, item)

    def _by_itself(self, work: Callable[[Any], T], number: int, item: Any) -> Outcome[T]:
        """An item whose process may have died, in a process of its own, so that no other pays for it."""
        with _Pool(1) as single:
            try:
                return single.submit(work, number, item).result()
            except BrokenProcessPool:
                return Outcome(number, None, DIED, failure=True)


def _begin(threads: int, parent: int, other_end: Any) -> None:
    """A process of the pool has its share of the machine, and does not outlive the one that began it.

    Ctrl-C goes to that one alone, which then closes its end of a pipe; so does its death.
    """
    native.set_threads(threads)
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with suppress(OSError):
            other_end.poll(None)
        _stopping.set()
        os.kill(os.getpid(), signal.SIGINT)
        until = time.monotonic() + GRACE
        while os.getppid() == parent or (_working.is_set() and time.monotonic() < until):
            time.sleep(0.2)  # the parent, if it lives, waits until this one has saved its work
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# In a process of the pool, or a rank that works: nothing else begins; an item is under way.
_stopping, _working = threading.Event(), threading.Event()


def _interruptible(work: Callable[[Any], T], number: int, item: Any) -> Outcome[T]:
    """The item, in a process of the pool or a rank, which can be interrupted while it works."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    _working.set()
    try:
        if _stopping.is_set():
            raise KeyboardInterrupt
        return _attempt(work, number, item)
    except KeyboardInterrupt:
        _stopping.set()
        raise
    finally:
        _working.clear()
        signal.signal(signal.SIGINT, before)
