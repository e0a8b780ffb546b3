"""Loads `chainrule serve` and writes benchmarks/results/serving.md.

    python -m benchmarks.serving                      a Llama of 135M random weights in int8, about ten minutes
    python -m benchmarks.serving --model small --quick     a minute, nothing is written

Clients 1, 4 and 8 beside one at a time; 1, 16 and 64 streams beyond the queue; disconnects; prefixes; drafts.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, command_line, progress
from benchmarks.report import describe_machine, markdown
from benchmarks.serving.client import Answer, ask, in_turn, together
from benchmarks.serving.process import MODELS, make_model, percentile, serving

SLOTS, QUEUE = 8, 24
Rows = list[list[str]]


def body(n: int, tokens: int, prompt: int = 32) -> dict[str, Any]:
    """Request n: another prompt and seed; it ends by its length."""
    ids = [(7 * n + 13 * i) % 256 for i in range(prompt)]
    return {"prompt": ids, "max_tokens": tokens, "seed": n, "temperature": 0.8}


def throughput(model: Path, weights: str, quick: bool) -> Rows:
    """Tokens per second of all clients together, in turn with a server of one slot."""
    tokens, each = (16, 2) if quick else (64, 3)
    rows = []
    flags = ("--weights", weights, "--queue", str(QUEUE))
    with (
        serving(model, *flags, "--slots", "1") as alone,
        serving(model, *flags, "--slots", str(SLOTS)) as many,
    ):
        for clients in (1, 4, 8):
            speeds: dict[str, list[float]] = {"alone": [], "many": []}
            answers: list[Answer] = []
            for round in range(1 if quick else 3):
                for name, server in (("alone", alone), ("many", many)):
                    bodies = [body(1000 * round + 100 * clients + i, tokens) for i in range(each * clients)]
                    began = time.perf_counter()
                    found = asyncio.run(in_turn(server.port, bodies, clients))
                    speeds[name].append(sum(a.tokens for a in found) / (time.perf_counter() - began))
                    answers += found if name == "many" else []
            one, all_ = (statistics.median(speeds[name]) for name in ("alone", "many"))
            gaps = [gap for answer in answers for gap in answer.gaps]
            rows.append(
                [str(clients), f"{one:.0f}", f"{all_:.0f}", f"{all_ / one:.2f}", *times(answers, gaps)]
            )
    return rows


def times(answers: list[Answer], gaps: list[float]) -> list[str]:
    """First token and between tokens, p50 and p99."""
    first = [answer.first for answer in answers]
    return [f"{1000 * percentile(v, 50):.0f} / {1000 * percentile(v, 99):.0f} ms" for v in (first, gaps)]


def streams(model: Path, weights: str, quick: bool) -> Rows:
    """Many streams at once: errors, how fast the rest is refused, memory."""
    rows = []
    with serving(model, "--weights", weights, "--slots", str(SLOTS), "--queue", str(QUEUE)) as server:
        asyncio.run(together(server.port, [body(i, 8) for i in range(SLOTS)]))
        for clients in (1, 16, 64):
            before = server.memory_mb
            for round in range(1 if quick else 4):
                found = asyncio.run(
                    together(server.port, [body(round * 100 + i, 24) for i in range(clients)])
                )
            refused = [answer for answer in found if answer.status == 429]
            whole = sum(answer.whole for answer in found)
            slowest = f"{1000 * max(answer.first for answer in refused):.0f} ms" if refused else ""
            rows.append(
                [str(clients), str(whole), str(len(refused)), slowest, str(clients - whole - len(refused)),
                 f"{before:.0f} -> {server.memory_mb:.0f} MB"]
            )  # fmt: skip
    return rows


def disconnects(model: Path, weights: str, quick: bool) -> Rows:
    """Clients that drop their connection after a few tokens, while one stream goes on."""
    count = 40 if quick else 500
    with serving(model, "--weights", weights, "--slots", str(SLOTS), "--queue", str(QUEUE)) as server:
        alone = asyncio.run(ask(server.port, body(1, 64)))

        async def run() -> Answer:
            steady = asyncio.create_task(ask(server.port, body(1, 64)))
            for first in range(0, count, 20):
                await asyncio.gather(
                    *(ask(server.port, body(first + i, 500), leave_after=1 + i % 3) for i in range(20))
                )
            return await steady

        before = server.memory_mb
        beside = asyncio.run(run())
        end = time.monotonic() + 10
        while True:  # a slot is free after the step that is under way
            left = server.metrics()
            live, held = (
                left["chainrule_live_requests"] - 1,
                left["chainrule_running"] + left["chainrule_waiting"],
            )
            if live == held == 0 or time.monotonic() > end:
                break
            time.sleep(0.01)
        same = "the same" if beside.text == alone.text and beside.whole else "ANOTHER"
        memory = f"{before:.0f} -> {server.memory_mb:.0f} MB"
    return [[str(count), f"{live:.0f}", f"{held:.0f}", same, memory]]


def prefixes(model: Path, weights: str, quick: bool) -> Rows:
    """The first token of a request whose beginning another one has read, beside that of a new one."""
    rows = []
    with serving(model, "--weights", weights, "--slots", "2") as server:
        for length in (128, 768):
            seconds: dict[str, list[float]] = {"new": [], "known": []}
            for round in range(2 if quick else 5):
                for kind in seconds:
                    asked = body(length + round, 1, prompt=length)
                    asked["prompt"][-1] = round if kind == "new" else 255 - round
                    seconds[kind].append(asyncio.run(ask(server.port, asked)).first)
            new, known = (1000 * statistics.median(seconds[kind]) for kind in seconds)
            rows.append([str(length), f"{new:.0f} ms", f"{known:.0f} ms", f"{new / known:.1f}"])
    return rows


def drafts(model: Path, weights: str, quick: bool) -> Rows:
    """Greedy texts, which repeat themselves with random weights, without drafts and with them; the texts are equal."""
    tokens = 64 if quick else 256
    texts, rows = [], []
    for name, flags in {"none": (), "ngram": ("--draft", "ngram"), "itself": ("--draft", str(model))}.items():
        with serving(model, "--weights", weights, "--slots", "1", *flags) as server:
            asked = body(3, tokens) | {"temperature": 0}
            asyncio.run(ask(server.port, asked | {"max_tokens": 1}))
            began = time.perf_counter()
            found = asyncio.run(ask(server.port, asked))
            seconds = time.perf_counter() - began
            counted = server.metrics()
        texts.append(found.text)
        guessed = counted["chainrule_drafted_total"]
        right = f"{counted['chainrule_accepted_total'] / guessed:.0%}" if guessed else ""
        rows.append([name, f"{tokens / seconds:.0f}", right, "yes" if found.text == texts[0] else "NO"])
    return rows


PARTS: dict[str, tuple[str, list[str], Callable[[Path, str, bool], Rows]]] = {
    "throughput": (
        "Tokens per second; first token and between tokens (p50 / p99) of the server with 8 slots",
        ["clients", "one slot", "eight slots", "ratio", "first token", "between tokens"],
        throughput,
    ),
    "streams": (
        f"Streams at once, {SLOTS} slots and a queue of {QUEUE}",
        ["streams", "whole", "429", "slowest 429", "other errors", "resident memory"],
        streams,
    ),
    "disconnects": (
        "Clients that leave",
        [
            "times",
            "live requests after",
            "slots held after",
            "text of a stream beside them",
            "resident memory",
        ],
        disconnects,
    ),
    "prefixes": ("Prefix reuse: first token", ["prompt", "new", "known but for its end", "ratio"], prefixes),
    "drafts": (
        "Drafts, greedy",
        ["draft", "tokens per second", "guesses that were right", "same text"],
        drafts,
    ),
}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", choices=MODELS, default="llama135")
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing is written")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    text = f"# Serving, {args.model} in {args.weights}, random weights\n\nWritten by `python -m benchmarks.serving`. "
    text += f"{describe_machine(2)}\n"
    with tempfile.TemporaryDirectory() as folder:
        progress("making the model")
        model = make_model(args.model, Path(folder) / "model")
        for name in args.only:
            title, header, measure = PARTS[name]
            progress(name)
            text += f"\n## {title}\n\n{markdown(header, measure(model, args.weights, args.quick))}\n"
    print(text)
    if not args.quick and args.only == list(PARTS):
        (ROOT / "benchmarks" / "results" / "serving.md").write_text(text)


if __name__ == "__main__":
    main()
