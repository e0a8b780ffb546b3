"""Errors as OpenAI writes them: {"error": {"message", "type", "param", "code"}} with the status of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.errors import CacheFull, ChainruleError, Setting
from chainrule.serve.batching import Full
from chainrule.serve.limits import LIMITS

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}


class ApiError(ChainruleError):
    """A request that is refused, or that failed."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        kind = "server_error" if self.status >= 500 else TYPES.get(self.status, "invalid_request_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


def refused(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """A request that cannot be answered as it is."""
    return ApiError(400, message, param=param, code=code)


def api_error(error: BaseException) -> ApiError:
    """Any error as a client may see it: what was asked wrongly is said, what went wrong inside is not."""
    if isinstance(error, ApiError):
        return error
    wait = {"Retry-After": str(LIMITS.retry_seconds)}
    if isinstance(error, Full):
        return ApiError(429, str(error), code="queue_full", headers=wait)
    if isinstance(error, CacheFull):
        return ApiError(
            400, f"serve: the text does not fit the caches of this server ({error})", code="cache_full"
        )
    if isinstance(error, ConnectionAbortedError):
        return ApiError(503, f"serve: {error}", code="shutting_down", headers=wait)
    if isinstance(error, ChainruleError):
        first = next((i for i, part in enumerate(error.args) if isinstance(part, Setting)), None)
        if first is None:
            return refused(str(error))
        return refused("".join(map(str, error.args[first:])), error.args[first])  # not the command it is of
    return ApiError(500, "serve: the request failed inside the server (see its log)", code="internal_error")
