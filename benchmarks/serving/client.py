"""A client that costs little: a stream over a plain socket, with the time of each of its tokens."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """What became of a request; times are in seconds since it was sent."""

    status: int = 0
    first: float = 0.0
    """Until the status for a request that is refused, else until the first token."""
    gaps: list[float] = field(default_factory=list)
    """Between tokens."""
    tokens: int = 0
    text: str = ""
    whole: bool = False
    """Ended as it should."""


async def ask(port: int, body: dict[str, Any], *, leave_after: int | None = None) -> Answer:
    """Stream a completion; with `leave_after` the connection is dropped after so many tokens."""
    content = json.dumps(body | {"stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    began = last = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = Answer()
    try:
        writer.write(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + content)
        found.status = int((await reader.readline()).split()[1])
        found.first = time.perf_counter() - began
        while line := await reader.readline():
            if not line.startswith(b"data: ") or found.status != 200:
                continue
            now = time.perf_counter()
            if line.startswith(b"data: [DONE]"):
                found.whole = True
                break
            if found.tokens:
                found.gaps.append(now - last)
            else:
                found.first = now - began
            last = now
            found.tokens += 1
            found.text += json.loads(line[6:])["choices"][0]["text"]
            if leave_after is not None and found.tokens >= leave_after:
                writer.transport.abort()
                break
    finally:
        writer.close()
    return found


async def together(port: int, bodies: list[dict[str, Any]]) -> list[Answer]:
    """All at once."""
    return await asyncio.gather(*(ask(port, body) for body in bodies))


async def in_turn(port: int, bodies: list[dict[str, Any]], clients: int) -> list[Answer]:
    """So many clients, each of which asks again as soon as it has its answer."""
    waiting = list(reversed(bodies))
    found: list[Answer] = []

    async def client() -> None:
        while waiting:
            found.append(await ask(port, waiting.pop()))

    await asyncio.gather(*(client() for _ in range(clients)))
    return found
