"""Independent items, worked on by several processes: the results do not depend on how many there are.

A failed item is tried once more; if it fails again its error is kept, and the others go on.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chainrule import native
from chainrule.errors import ChainruleError, ConfigError

T = TypeVar("T")
TRIES = 2
TROUBLE = (ChainruleError, OSError, MemoryError, ValueError)  # of an item, not of the program


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of an item: a result, or the error of its last try."""

    number: int
    result: T | None
    error: str = ""


def each(work: Callable[[Any], T], items: Sequence[Any], jobs: int = 1) -> Iterator[Outcome[T]]:
    """work(item) for every item, in the order in which they end; with one job here, else in `jobs` processes

    `work` is a function of a module. The processes share the machine's threads.
    """
    if jobs < 1:
        raise ConfigError(f"jobs: {jobs} processes (must be at least 1)")
    if jobs == 1:
        yield from (_here(work, number, item) for number, item in enumerate(items))
        return
    waiting = [(number, item, 1) for number, item in enumerate(items)]
    while waiting:
        failed, suspects = [], []
        for number, item, attempt, future in _worked_on(work, waiting, jobs):
            try:
                yield Outcome(number, future.result())
            except BrokenProcessPool:  # a process has died: which item it was working on is not known
                suspects.append((number, item))
            except TROUBLE as error:
                if attempt < TRIES:
                    failed.append((number, item, attempt + 1))
                else:
                    yield Outcome(number, None, str(error) or type(error).__name__)
        for number, item in suspects:
            yield _in_its_own_process(work, number, item)
        waiting = failed


def _worked_on(
    work: Callable[[Any], T], waiting: Sequence[tuple[int, Any, int]], jobs: int
) -> Iterator[tuple[int, Any, int, Future[T]]]:
    """All items, each when its future is done."""
    threads = max(1, native.get_threads() // jobs)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=native.set_threads, initargs=(threads,))
    try:
        futures = {pool.submit(work, each[1]): each for each in waiting}
        for future in as_completed(futures):
            yield *futures[future], future
    finally:  # after Ctrl-C what has begun may save itself; nothing else begins
        pool.shutdown(wait=True, cancel_futures=True)


def _in_its_own_process(work: Callable[[Any], T], number: int, item: Any) -> Outcome[T]:
    """An item whose process may have died: alone, so that no other pays for it."""
    error = ""
    for _, _, _, future in _worked_on(work, [(number, item, TRIES)], 1):
        try:
            return Outcome(number, future.result())
        except (*TROUBLE, BrokenProcessPool) as trouble:
            error = str(trouble) or type(trouble).__name__
    return Outcome(number, None, error)


def _here(work: Callable[[Any], T], number: int, item: Any) -> Outcome[T]:
    for attempt in range(TRIES):
        try:
            return Outcome(number, work(item))
        except TROUBLE as error:
            if attempt + 1 == TRIES:
                return Outcome(number, None, str(error) or type(error).__name__)
    raise AssertionError("a try ends with a result or an error")
