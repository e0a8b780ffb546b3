"""The gate: every request passes it, is checked before any work, gets an id, and leaves one line in the log."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chainrule.serve.api.errors import ApiError, api_error
from chainrule.serve.batching import Full
from chainrule.serve.http.events import dumped
from chainrule.serve.http.flow import Disconnected
from chainrule.serve.http.metrics import Metrics

GONE = 499  # what the log says of a client that has left
OPEN = "/health"  # needs no key
WATCHED = (OPEN, "/metrics")  # asked for all the time: always answered, logged if something is wrong
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def log_line(**record: Any) -> None:
    """One JSON object on stderr, in ASCII, whatever the encoding of stderr; nothing if stderr is gone."""
    with suppress(OSError, ValueError):
        print(json.dumps(record, default=str), file=sys.stderr, flush=True)


def report(error: BaseException) -> None:
    """What went wrong inside, for the person who runs the server; a client never sees it."""
    log_line(time=time.time(), error=str(error), trace="".join(traceback.format_exception(error)))


class Gate:
    """Around the app: host, key, request id, log and count; at most `most` requests at a time."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        paths: Collection[str],
        *,
        api_key: str | None = None,
        hosts: Collection[str] = (),
        most: int | None = None,
        log: Callable[..., None] = log_line,
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.paths = frozenset(paths)
        self.key = None if api_key is None else _digest(api_key.strip().encode())
        self.hosts = frozenset(host.lower() for host in hosts) | {"localhost"}
        self.most = most
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        began, status = time.perf_counter(), 0
        given = headers.get("x-request-id", "")
        id = given if re.fullmatch(r"[\w.-]{1,64}", given, re.ASCII) else f"req-{secrets.token_hex(8)}"
        facts: dict[str, Any] = {}
        scope["state"] = {**scope.get("state", {}), "facts": facts, "began": began}

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                head = MutableHeaders(scope=message)
                head["X-Request-Id"] = id
                for name, value in SECURITY.items():
                    head.setdefault(name, value)
            await send(message)

        self.metrics.live += 1
        try:
            self._check(scope["path"], headers)
            await self.app(scope, receive, guarded)
        except Disconnected:
            status = GONE
        except Exception as error:
            if api_error(error).status >= 500:
                report(error)
            if not status:
                await error_response(error)(scope, receive, guarded)
        finally:
            self.metrics.live -= 1
            seconds = time.perf_counter() - began
            status = facts.pop("status", status)
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.count(path, status, seconds)
            if path not in WATCHED or status != 200:
                self.log(
                    time=round(time.time(), 3), id=id, client=(scope.get("client") or ("",))[0], method=scope["method"],
                    path=scope["path"][:200], status=status, ms=round(seconds * 1000, 1), **facts,
                )  # fmt: skip

    def _check(self, path: str, headers: Headers) -> None:
        """Refuse names that are not ours, pages of other sites, and requests without a key."""
        host = headers.get("host", "")
        name = host_name(host)
        if not (name in self.hosts or _is_address(name)):
            rule = "must be an address, localhost, or a name given with --allow-host"
            raise ApiError(403, f"host: {name[:100]!r} ({rule})", code="host_not_allowed")
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            rule = "must be this server: no other site may use it"
            raise ApiError(403, f"origin: {origin[:100]!r} ({rule})", code="origin_not_allowed")
        if self.key is not None and path != OPEN and not self._has_key(headers.get("authorization", "")):
            challenge = {"WWW-Authenticate": 'Basic realm="chainrule"' if path == "/" else "Bearer"}
            rule = "must be given as Authorization: Bearer KEY"
            raise ApiError(
                401, f"api key: missing or wrong ({rule})", code="invalid_api_key", headers=challenge
            )
        if self.most is not None and self.metrics.live > self.most and path not in WATCHED:
            raise Full(f"serve: more than {self.most} requests at a time (try again later)")

    def _has_key(self, authorization: str) -> bool:
        """A bearer's key, or as the password of any user: so a browser can ask for it. Compared in constant time."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode("latin-1").partition(":")[2]
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != "bearer":
            return False
        assert self.key is not None
        given = given.strip()
        return bool(given) and hmac.compare_digest(_digest(given.encode("latin-1")), self.key)


def error_response(error: BaseException) -> Response:
    """Any error, as OpenAI writes it."""
    found = api_error(error)
    return Response(dumped(found.body), found.status, found.headers, "application/json")


def host_name(host: str) -> str:
    """Without its port: name, 1.2.3.4, or [::1]

    >>> from chainrule.serve.http.gate import host_name
    >>> host_name("Localhost:8000"), host_name("[::1]:80"), host_name("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    """An address cannot be made to lead elsewhere, as a name can."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _digest(key: bytes) -> bytes:
    """Of one length for all keys; headers arrive as latin-1, whatever they hold."""
    return hashlib.sha256(key).digest()
