"""What goes wrong: clients that leave or are killed, a request that fails inside the model, SIGTERM under load."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time

from benchmarks.serving.client import Answer, ask, body, together
from benchmarks.serving.faulty import POISON
from benchmarks.serving.load import QUEUE, SLOTS, flags
from benchmarks.serving.part import Part, Setting
from benchmarks.serving.process import Serving, serving


def disconnects(setting: Setting) -> Part:
    """Clients that drop their connection after a few tokens, while one stream goes on; then clients that are killed."""
    part = Part(
        "Clients that leave",
        ["how", "times", "live requests after", "texts after", "pages after", "resident memory"],
    )
    with serving(setting.model, *flags(setting)) as server:
        alone = asyncio.run(ask(server.port, body(1, 64)))
        before, times = server.memory_mb, 40 if setting.quick else 500
        beside = asyncio.run(_leave(server, times))
        _after(part, server, "connection dropped", times, before)
        part.check("a stream beside them: the same text", "", beside.whole and beside.text == alone.text)
        before, times = server.memory_mb, 3 if setting.quick else 20
        for _ in range(times):
            _kill(server)
        _after(part, server, f"kill -9 of a process with {SLOTS + QUEUE} streams", times, before)
    return part


async def _leave(server: Serving, times: int) -> Answer:
    steady = asyncio.create_task(ask(server.port, body(1, 64)))
    for first in range(0, times, 20):
        asked = [ask(server.port, body(first + i, 500), leave_after=1 + i % 3) for i in range(20)]
        await asyncio.gather(*asked)
    return await steady


def _kill(server: Serving) -> None:
    """A process whose streams are running or waiting, killed after the first of them has begun."""
    command = [sys.executable, "-m", "benchmarks.serving.client", str(server.port), str(SLOTS + QUEUE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        client.stdout.readline()
        client.kill()


def _after(part: Part, server: Serving, how: str, times: int, before: float) -> None:
    """What is left: nothing at work, and of each slot no more than the page of a new, short text."""
    asked, texts = server.live()
    asyncio.run(together(server.port, [body(9000 + i, 2, prompt=2) for i in range(SLOTS)]))
    pages = int(server.metrics()["chainrule_cache_pages"])
    memory = f"{before:.0f} -> {server.memory_mb:.0f} MB"
    part.rows.append([how, str(times), str(asked), str(texts), str(pages), memory])
    part.check(f"{how}: no live request, no text", f"{asked}, {texts}", asked == texts == 0)
    part.check(f"{how}: no page but one for each slot", pages, pages <= SLOTS)


def raising(setting: Setting) -> Part:
    """A request on which the model fails, beside others, which must not notice."""
    part = Part(
        "A request that fails inside the model", ["others", "whole and unchanged", "what the one was told"]
    )
    others = [body(i, 24) for i in range(SLOTS - 1)]
    bad = body(99, 24) | {"prompt": [1, POISON, 2]}
    with serving(setting.model, *flags(setting), module="benchmarks.serving.faulty") as server:
        expected = asyncio.run(together(server.port, others))
        *found, failed = asyncio.run(together(server.port, [*others, bad]))
        same = sum(a.whole and a.text == b.text for a, b in zip(found, expected, strict=True))
        again = asyncio.run(ask(server.port, others[0]))
    part.rows.append([str(len(others)), str(same), failed.error])
    part.check("the others are whole and unchanged", f"{same} of {len(others)}", same == len(others))
    part.check(
        "it ends with an error, without details", failed.error, "failed inside the server" in failed.error
    )
    part.check("the server goes on", again.whole, again.whole)
    return part


def stopping(setting: Setting) -> Part:
    """SIGTERM while streams run and wait: all of them end as they should, and the process with exit code 0."""
    part = Part("SIGTERM under load", ["streams", "whole", "exit code", "seconds"])
    count = SLOTS + QUEUE // 3
    with serving(setting.model, *flags(setting)) as server:
        alone = asyncio.run(ask(server.port, body(0, 32)))
        found, seconds = asyncio.run(_stop(server, count))
        code = server.process.wait(60)
    whole = sum(answer.whole for answer in found)
    part.rows.append([str(count), str(whole), str(code), f"{seconds:.1f}"])
    part.check("all streams are whole", f"{whole} of {count}", whole == count and found[0].text == alone.text)
    part.check("exit code 0", code, code == 0)
    return part


async def _stop(server: Serving, count: int) -> tuple[list[Answer], float]:
    begun = asyncio.Event()
    asked = [asyncio.create_task(ask(server.port, body(i, 32), begun=begun.set)) for i in range(count)]
    await begun.wait()
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    return await asyncio.gather(*asked), time.monotonic() - began
