"""uvicorn, with a socket of ours, signals that drain, and clients that cannot keep a connection for nothing."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from chainrule.serve.limits import LIMITS

SENT_AHEAD = 1 << 17  # bytes that a client has not taken: left to itself a system holds megabytes of each


class Protocol(H11Protocol):
    """Closes connections that are too many, whose next request does not come, or whose client does not read.

    The app may abort one, too.
    """

    _awaited: Any = None  # the request after which the next one is awaited

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > LIMITS.connections:
            transport.abort()
            return
        self.app_state = {**self.app_state, "abort": transport.abort}
        if sock := transport.get_extra_info("socket"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_AHEAD)
        self.loop.call_later(LIMITS.read_seconds, self._check_begun, None)

    def data_received(self, data: bytes) -> None:
        """What has come may be the beginning of a request: it must be there in time."""
        super().data_received(data)
        cycle: Any = self.cycle
        if cycle is not None and cycle.response_complete and self._awaited is not cycle:
            self._awaited = cycle
            self.loop.call_later(LIMITS.read_seconds, self._check_begun, cycle)

    def _check_begun(self, before: Any) -> None:
        if self.cycle is before and not self.transport.is_closing():
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_taken()

    def _watch_taken(self) -> None:
        """An answer is sent as a whole: the client must take some of it in time."""
        if size := self.transport.get_write_buffer_size():
            self.loop.call_later(LIMITS.write_seconds, self._check_taken, self.cycle, size)

    def _check_taken(self, cycle: Any, before: int) -> None:
        if self.cycle is not cycle and self.cycle.response_started:
            return  # the answer was taken, or the next one would not have begun
        if self.transport.get_write_buffer_size() < before:
            self._watch_taken()
        else:
            self.transport.abort()


class Uvicorn(uvicorn.Server):
    """Calls `ready` once it answers. SIGTERM and SIGINT let requests end; a second one does not wait for them."""

    def __init__(
        self, app: ASGIApp, ready: Callable[[], None], drain_seconds: float = LIMITS.drain_seconds
    ) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=int(drain_seconds),
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets=sockets)
        if self.force_exit:  # uvicorn would leave the application as it is, and tell of its end as an error
            await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but the process ends by itself, with exit code 0, and not by the signal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        names = (signal.SIGINT, signal.SIGTERM)
        before = {name: signal.signal(name, self._stop) for name in names}
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(
    app: ASGIApp, sock: socket.socket, ready: Callable[[], None], drain_seconds: float = LIMITS.drain_seconds
) -> None:
    """Answer until a signal comes; then what runs has `drain_seconds` to end."""
    asyncio.run(Uvicorn(app, ready, drain_seconds).serve(sockets=[sock]))
