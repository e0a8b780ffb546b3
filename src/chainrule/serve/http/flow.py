"""Flow: updates of jobs, from the thread that works to the event loop; a client that leaves ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class Disconnected(Exception):
    """The client has gone."""


class Flow(Generic[T]):
    """Messages by number, in the order in which they were told; leaving the block cancels what is not over."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[int, T] | None] = asyncio.Queue()
        self._cancel: Callable[[], None] = lambda: None

    def tell(self, number: int) -> Callable[[T], None]:
        """What a job calls, from any thread."""

        def put(message: T) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._queue.put_nowait, (number, message))

        return put

    def begun(self, cancel: Callable[[], None]) -> None:
        """Jobs have been submitted; this cancels them."""
        self._cancel = cancel

    async def next(self) -> tuple[int, T]:
        """The next message; an error if the client has gone."""
        found = await self._queue.get()
        if found is None:
            raise Disconnected
        return found

    def left(self) -> None:
        """The client has gone."""
        self._cancel()
        self._queue.put_nowait(None)

    def __enter__(self) -> Flow[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel()


@asynccontextmanager
async def watched(flow: Flow[Any], receive: Receive) -> AsyncIterator[None]:
    """Tell the flow as soon as the client leaves."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        flow.left()

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()


def cancel_all(cancel: Callable[[T], None], jobs: Sequence[T]) -> Callable[[], None]:
    """A call that cancels each of the jobs."""

    def all() -> None:
        for job in jobs:
            cancel(job)

    return all
