"""Server-sent events: each is written as soon as it is there; a client that does not take them is dropped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chainrule.serve.api.errors import api_error
from chainrule.serve.http.flow import Disconnected, Flow, watched
from chainrule.serve.limits import LIMITS

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def dumped(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


class EventStream(Response):
    """The events of a flow, then [DONE]. What goes wrong on the way is an event with an error.

    `left` is told of a client that went or does not read, `failed` of what went wrong here.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        flow: Flow[Any],
        events: AsyncIterator[dict[str, Any]],
        *,
        left: Callable[[BaseException], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._flow = flow
        self._events = events
        self._left = left
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(data: bytes, more: bool = True) -> None:
            async with asyncio.timeout(LIMITS.write_seconds):
                await send({"type": "http.response.body", "body": data, "more_body": more})

        with self._flow:
            try:
                async with watched(self._flow, receive):
                    await send(
                        {
                            "type": "http.response.start",
                            "status": self.status_code,
                            "headers": self.raw_headers,
                        }
                    )
                    async for data in self._lines():
                        await write(data)
                    await write(b"", more=False)
            except (Disconnected, TimeoutError, OSError) as error:
                self._left(error)
                scope.get("state", {}).get("abort", lambda: None)()

    async def _lines(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._events:
                yield b"data: " + dumped(event) + b"\n\n"
        except Disconnected:
            raise
        except Exception as error:
            self._failed(error)
            yield b"data: " + dumped(api_error(error).body) + b"\n\n"
        yield b"data: [DONE]\n\n"
