"""Independent items, worked on by several processes: the results do not depend on how many there are.

A failed item is tried once more; if it fails again its error is kept, and the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
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
    threads = max(1, (os.cpu_count() or 1) // jobs)
    waiting = [(number, item, 1) for number, item in enumerate(items)]
    while waiting:
        failed = []
        pool = ProcessPoolExecutor(
            jobs, multiprocessing.get_context("spawn"), initializer=native.set_threads, initargs=(threads,)
        )
        try:
            futures: dict[Future[T], tuple[int, Any, int]] = {
                pool.submit(work, item): (number, item, attempt) for number, item, attempt in waiting
            }
            for future in as_completed(futures):
                number, item, attempt = futures[future]
                try:
                    yield Outcome(number, future.result())
                except (*TROUBLE, BrokenProcessPool) as error:
                    if attempt < TRIES:
                        failed.append((number, item, attempt + 1))
                    else:
                        yield Outcome(number, None, str(error) or type(error).__name__)
        finally:  # after Ctrl-C what has begun may save itself; nothing else begins
            pool.shutdown(wait=True, cancel_futures=True)
        waiting = failed


def _here(work: Callable[[Any], T], number: int, item: Any) -> Outcome[T]:
    for attempt in range(TRIES):
        try:
            return Outcome(number, work(item))
        except TROUBLE as error:
            if attempt + 1 == TRIES:
                return Outcome(number, None, str(error) or type(error).__name__)
    raise AssertionError("a try ends with a result or an error")
