"""A client that costs little: a stream over a plain socket, with the time of each of its events.

As a program it opens streams and waits to be killed:

    python -m benchmarks.serving.client PORT STREAMS
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """What became of a request; times are in seconds since it was sent."""

    status: int = 0
    first: float = 0.0
    """Until the status for a request that is refused, else until the first token."""
    gaps: list[float] = field(default_factory=list)
    """Between events with text, which are tokens unless some were guessed ahead."""
    tokens: int = 0
    text: str = ""
    error: str = ""
    whole: bool = False
    """Ended as it should."""
    left: bool = False
    """By us, on purpose."""


def body(n: int, tokens: int, prompt: int = 32) -> dict[str, Any]:
    """Request n: another prompt and seed; it ends by its length."""
    ids = [(7 * n + 13 * i) % 251 for i in range(prompt)]
    return {"prompt": ids, "max_tokens": tokens, "seed": n, "temperature": 0.8}


async def ask(
    port: int,
    body: dict[str, Any],
    *,
    leave_after: int | None = None,
    begun: Callable[[], None] = lambda: None,
) -> Answer:
    """Stream a completion; with `leave_after` the connection is dropped after so many events.

    `begun` is called at the first of them.
    """
    content = json.dumps(body | {"stream": True, "stream_options": {"include_usage": True}}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    sent = last = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    found, events = Answer(), 0
    try:
        writer.write(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + content)
        found.status = int((await reader.readline()).split()[1])
        found.first = time.perf_counter() - sent
        while line := await reader.readline():
            if not line.startswith(b"data: ") or found.status != 200:
                continue
            now = time.perf_counter()
            if line.startswith(b"data: [DONE]"):
                found.whole = not found.error
                break
            event = json.loads(line[6:])
            found.error = event.get("error", {}).get("message", found.error)
            found.tokens = (event.get("usage") or {}).get("completion_tokens", found.tokens)
            text = "".join(choice["text"] for choice in event.get("choices", ()))
            if not text:
                continue
            if found.text:
                found.gaps.append(now - last)
            else:
                found.first = now - sent
                begun()
            last = now
            events += 1
            found.text += text
            if leave_after is not None and events >= leave_after:
                writer.transport.abort()
                found.left = True
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
    for answer in found:
        check_whole(answer)
    return found


def check_whole(answer: Answer) -> None:
    """A time counts only for an answer that is whole."""
    if not answer.whole:
        raise RuntimeError(f"an answer is not whole: status {answer.status}, {answer.error or 'cut off'}")


def main() -> None:
    port, streams = map(int, sys.argv[1:])

    async def run() -> None:
        asked = (ask(port, body(n, 900), begun=lambda: print("begun", flush=True)) for n in range(streams))
        await asyncio.gather(*asked)

    asyncio.run(run())


if __name__ == "__main__":
    main()
