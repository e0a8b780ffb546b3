"""The body of a request: no more of it is read than is allowed, and not for longer."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from chainrule.serve.api.errors import ApiError
from chainrule.serve.http.flow import Disconnected
from chainrule.serve.limits import LIMITS


async def read_body(request: Request) -> bytes:
    """All of it, if it is small enough and comes in time."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > LIMITS.body_bytes:
        raise too_large()
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(
            415, f"content-type: {kind[:80]!r} (must be application/json)", code="unsupported_media_type"
        )
    try:
        async with asyncio.timeout(LIMITS.read_seconds):
            parts, size = [], 0
            async for part in request.stream():
                size += len(part)
                if size > LIMITS.body_bytes:
                    raise too_large()
                parts.append(part)
    except TimeoutError:
        raise ApiError(408, f"body: not there after {LIMITS.read_seconds:g} s", code="timeout") from None
    except ClientDisconnect:
        raise Disconnected from None
    return b"".join(parts)


def too_large() -> ApiError:
    message = f"body: too large (must be at most {LIMITS.body_bytes:,} bytes)"
    return ApiError(413, message, code="request_too_large", headers={"Connection": "close"})
