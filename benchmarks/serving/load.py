"""Many streams at once, and for long: errors, how fast the rest is refused, memory."""

from __future__ import annotations

import asyncio
import time
from itertools import count

from benchmarks.serving.client import Answer, ask, body, together
from benchmarks.serving.part import Part, Setting
from benchmarks.serving.process import Serving, serving

SLOTS, QUEUE = 8, 24
CLIENTS = 16  # of steady load
FLAT_MB = 8.0  # that memory may grow after the first tenth of steady load


def flags(setting: Setting) -> tuple[str, ...]:
    return (*setting.flags, "--slots", str(SLOTS), "--queue", str(QUEUE))


def streams(setting: Setting) -> Part:
    """Up to slots + queue all are answered, and the rest is refused at once."""
    part = Part(
        f"Streams at once, {SLOTS} slots and a queue of {QUEUE}",
        ["streams", "whole", "429", "slowest 429", "other errors", "resident memory"],
    )
    with serving(setting.model, *flags(setting)) as server:
        asyncio.run(together(server.port, [body(i, 8) for i in range(SLOTS)]))
        for clients in (1, 16, 64):
            before, found = server.memory_mb, []
            rounds = 1 if setting.quick else 4
            for round in range(rounds):
                bodies = [body(round * 100 + i, 24) for i in range(clients)]
                found += asyncio.run(together(server.port, bodies))
            refused = [answer for answer in found if answer.status == 429]
            whole = sum(answer.whole for answer in found)
            wrong = len(found) - whole - len(refused)
            slowest = max((answer.first for answer in refused), default=0.0)
            part.rows.append(
                [f"{clients} × {rounds}", str(whole), str(len(refused)), f"{1000 * slowest:.0f} ms" if refused else "",
                 str(wrong), f"{before:.0f} -> {server.memory_mb:.0f} MB"]
            )  # fmt: skip
            fit = min(clients, SLOTS + QUEUE) * rounds
            part.check(
                f"{clients} streams: no error up to slots + queue",
                f"{whole} whole",
                whole >= fit and not wrong,
            )
            if refused:
                rule = f"{clients} streams: 429 within 100 ms"
                part.check(rule, f"{1000 * slowest:.0f} ms", slowest <= 0.1)
    return part


def steady(setting: Setting) -> Part:
    """Clients that ask again and again, prompts of all lengths, some of whom leave; the memory over time."""
    minutes = 0.2 if setting.quick else setting.minutes
    part = Part(
        f"{CLIENTS} clients for {minutes:g} minutes", ["minute", "requests", "tokens", "resident memory"]
    )
    with serving(setting.model, *flags(setting)) as server:
        answers = asyncio.run(_ask_for(server, minutes, part))
        asked, texts = server.live()
    errors = [answer for answer in answers if not (answer.whole or answer.left)]
    part.check("no error", f"{len(errors)} of {len(answers)}", not errors)
    part.check("no live request and no text after it", f"{asked}, {texts}", asked == texts == 0)
    sizes = [float(row[-1].split()[0]) for row in part.rows]
    grown = max(sizes[1:]) - sizes[0]
    part.check(
        f"memory flat: at most {FLAT_MB:g} MB more than after a tenth of the time",
        f"{grown:+.0f} MB",
        grown <= FLAT_MB,
    )
    return part


async def _ask_for(server: Serving, minutes: float, part: Part) -> list[Answer]:
    """A row of the table after each tenth of the time."""
    began, answers, numbers = time.monotonic(), [], count()
    end = began + 60 * minutes

    async def client() -> None:
        while time.monotonic() < end:
            n = next(numbers)
            asked = body(n, 8 + n % 57, prompt=8 + 37 * n % 400)
            answers.append(await ask(server.port, asked, leave_after=3 if n % 5 == 0 else None))

    async def watch() -> None:
        for tenth in range(1, 11):
            await asyncio.sleep(max(0.0, began + 6 * minutes * tenth - time.monotonic()))
            tokens = server.metrics()["chainrule_tokens_total"]
            part.rows.append(
                [
                    f"{minutes * tenth / 10:.3g}",
                    str(len(answers)),
                    f"{tokens:.0f}",
                    f"{server.memory_mb:.1f} MB",
                ]
            )

    await asyncio.gather(watch(), *(client() for _ in range(CLIENTS)))
    return answers
