"""How fast it is: many clients, prompts whose beginning is known, tokens that are guessed."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import ExitStack

from benchmarks.serving.client import Answer, ask, body, in_turn
from benchmarks.serving.llama import BODY, llama_serving
from benchmarks.serving.part import Part, Setting
from benchmarks.serving.process import gguf_of, percentile, serving

SLOTS = 8
ONE, MANY, LLAMA = "one slot", "eight slots", "llama-server"


def throughput(setting: Setting) -> Part:
    """Tokens per second of all clients together, servers in turn."""
    part = Part(
        "Tokens per second, and the times of the server with eight slots: p50 / p99",
        ["clients", ONE, MANY, "ratio", LLAMA, "ratio", "first token", "between tokens"],
    )
    tokens, each, rounds = (16, 2, 1) if setting.quick else (64, 3, 3)
    with ExitStack() as stack:
        servers = {
            ONE: stack.enter_context(serving(setting.model, *setting.flags, "--slots", "1")),
            MANY: stack.enter_context(serving(setting.model, *setting.flags, "--slots", str(SLOTS))),
        }
        peer = stack.enter_context(llama_serving(gguf_of(setting.model), SLOTS))
        if peer is not None:
            servers[LLAMA] = peer
        for server in servers.values():
            asyncio.run(in_turn(server.port, [body(n, 4) for n in range(SLOTS)], SLOTS))
        for clients in (1, 4, 8):
            speeds: dict[str, list[float]] = {name: [] for name in servers}
            answers: list[Answer] = []
            for round in range(rounds):
                bodies = [body(1000 * round + 100 * clients + i, tokens) for i in range(each * clients)]
                for name, server in servers.items():
                    more = BODY if name == LLAMA else {}
                    began = time.perf_counter()
                    found = asyncio.run(in_turn(server.port, [each | more for each in bodies], clients))
                    speeds[name].append(sum(a.tokens for a in found) / (time.perf_counter() - began))
                    answers += found if name == MANY else []
            one, many, *other = (statistics.median(speed) for speed in speeds.values())
            beside = [f"{other[0]:.0f}", f"{many / other[0]:.2f}"] if other else ["not measured", ""]
            ratios = [f"{one:.0f}", f"{many:.0f}", f"{many / one:.2f}", *beside]
            part.rows.append([str(clients), *ratios, *times(answers)])
            if other and clients in (1, 8):
                least = 1.0 if clients == 1 else 1.3
                rule = f"at {clients} clients at least {least:g} × {LLAMA}"
                part.check(rule, f"{many / other[0]:.2f}", many >= least * other[0])
            elif clients == 8:
                part.check("at 8 clients at least 3 × one slot", f"{many / one:.2f}", many >= 3 * one)
        memory = ", ".join(f"{name} {server.memory_mb:.0f} MB" for name, server in servers.items())
    part.notes.append(f"Resident after that: {memory}.")
    if LLAMA not in servers:
        part.notes.append(f"{LLAMA} was not found: set CHAINRULE_LLAMA_CPP to its folder.")
    return part


def times(answers: list[Answer]) -> list[str]:
    """First token and between tokens, p50 and p99."""
    first = [answer.first for answer in answers]
    gaps = [gap for answer in answers for gap in answer.gaps]
    return [f"{1000 * percentile(v, 50):.0f} / {1000 * percentile(v, 99):.0f} ms" for v in (first, gaps)]


def prefixes(setting: Setting) -> Part:
    """The first token of a request whose beginning another one has read, beside that of a new one."""
    part = Part("Prefix reuse: first token", ["prompt", "new", "known but for its end", "ratio"])
    with serving(setting.model, *setting.flags, "--slots", "2") as server:
        asyncio.run(ask(server.port, body(1, 1)))
        for length in (128, 768):
            seconds: dict[str, list[float]] = {"new": [], "known": []}
            for round in range(2 if setting.quick else 5):
                for kind in seconds:
                    asked = body(length + round, 1, prompt=length)
                    asked["prompt"][-1] = round if kind == "new" else 250 - round
                    seconds[kind].append(asyncio.run(ask(server.port, asked)).first)
            new, known = (1000 * statistics.median(seconds[kind]) for kind in seconds)
            part.rows.append([str(length), f"{new:.0f} ms", f"{known:.0f} ms", f"{new / known:.1f}"])
    part.check("a known prompt is faster", f"{new / known:.1f} ×", known < new)
    return part


def drafts(setting: Setting) -> Part:
    """Greedy texts, which repeat themselves with random weights, without drafts and with them; the texts are equal."""
    part = Part(
        "Drafts, greedy", ["draft", "tokens per second", "speed-up", "guesses that were right", "same text"]
    )
    tokens = 64 if setting.quick else 256
    texts, speeds = [], []
    kinds = {"none": (), "ngram": ("--draft", "ngram"), "itself": ("--draft", str(setting.model))}
    for name, flags in kinds.items():
        with serving(setting.model, *setting.flags, "--slots", "1", *flags) as server:
            asked = body(3, tokens) | {"temperature": 0}
            asyncio.run(ask(server.port, asked | {"max_tokens": 1}))
            began = time.perf_counter()
            found = asyncio.run(ask(server.port, asked))
            speeds.append(tokens / (time.perf_counter() - began))
            counted = server.metrics()
        texts.append(found.text)
        guessed = counted["chainrule_drafted_total"]
        right = f"{counted['chainrule_accepted_total'] / guessed:.0%} of {guessed:.0f}" if guessed else ""
        same = "yes" if found.text == texts[0] else "NO"
        part.rows.append([name, f"{speeds[-1]:.0f}", f"{speeds[-1] / speeds[0]:.2f}", right, same])
    part.check("the same text with every draft", len(set(texts)), len(set(texts)) == 1)
    return part
