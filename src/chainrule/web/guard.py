"""Who may talk to the Studio: pages that it served itself, on this machine.

Another site open in the same browser can send requests to local ports, under a name that leads here. So the name in
the Host header must be a local one, and what changes something must be sent by a page of the Studio.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chainrule.serve.http.gate import SECURITY, host_name

LARGEST = 4_000_000  # bytes of a request: the longest table, with every character escaped
LOCAL = ("127.0.0.1", "localhost", "::1")
HEADERS = {**SECURITY, "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache"}


class Guard:
    """Refuses strangers; every answer carries the policy of the page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif refused := _refusal(Request(scope)):
            await JSONResponse({"error": refused}, 403)(scope, receive, guarded)
        else:
            await self.app(scope, receive, guarded)


def _refusal(request: Request) -> str:
    host = request.headers.get("host", "")
    name = host_name(host)
    if name not in LOCAL:
        return f"host {name[:60]!r}: not this machine (must be one of {', '.join(LOCAL)})"
    if request.method in ("GET", "HEAD"):
        return ""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return f"origin {origin[:60]!r}: another page (must be the Studio's own)"
    if not request.headers.get("content-type", "").startswith("application/json"):
        return "content type: must be application/json"
    size = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers or not size.isdecimal() or int(size) > LARGEST:
        return f"request of {size[:20]} bytes: must say its size, at most {LARGEST:,} bytes"
    return ""
