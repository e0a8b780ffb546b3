"""Text generation beside PyTorch and llama.cpp: reading a prompt of 512 tokens, then one token after the other behind a
context of 8 and of 512 tokens, for every weight format; and one token of each of eight texts. Weights are random.

    make bench ONLY=decode

PyTorch has no fast kernel for weights of 8 or 4 bits on a CPU: there llama.cpp alone is the peer, with the same blocks
(Q8_0, Q4_0). Without llama.cpp those rows are not measured; decode_llama_cpp.py says how it is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Measured, Program, command_line, faster, progress, race, serve, started, timed
from benchmarks.report import (
    NOT_MEASURED,
    Row,
    Table,
    bold,
    joined,
    machine_limits,
    middle_and_best,
    milliseconds,
)

GPT2 = {"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024, "vocab_size": 50257}
LLAMA135 = {
    "n_layer": 30, "n_head": 9, "n_kv_head": 3, "n_embd": 576, "n_hidden": 1536, "block_size": 2048,
    "vocab_size": 49152,
}  # fmt: skip
MODELS = {"gpt2": GPT2, "llama135": LLAMA135}
NAMES = {"gpt2": "GPT-2 124 M", "llama135": "Llama 135 M"}
FORMATS = ("fp32", "bf16", "q8_0", "q4_0")
TORCH_FORMATS = ("fp32", "bf16")
PROGRAMS = {"Chainrule": "decode_chainrule", "PyTorch": "decode_torch", "llama.cpp": "decode_llama_cpp"}
SHORT, LONG, PREFILL, MEMORY = "after 8", "after 512", "prefill 512", "memory"
EIGHT = "8 texts after 8"
CASES = {
    SHORT: "one token after 8",
    EIGHT: "one token of eight texts after 8",
    LONG: "one token after 512",
    PREFILL: "prompt of 512 tokens",
}
TEXTS = 8
TOKENS = 16  # one sample is the mean over this many tokens
ROUNDS = 5
Found = dict[str, dict[str, Measured]]  # case, program


def measure(threads: int, quick: bool) -> Table:
    rounds = 1 if quick else ROUNDS
    table = Table(
        "Generation, batch 1, random weights",
        f"Median (minimum), programs in turn, {rounds} rounds; a time per token is a mean over {TOKENS} tokens. Ratio: "
        "to the fastest peer. Read limit: the bytes of weights and cache that a token needs, over the median time, as "
        "a fraction of what the machine can read. Memory: peak in total (growth over the imported library).",
        ["model", "weights", "work", *PROGRAMS, "ratio of medians", "of minima", "read limit",
         *(f"memory, {name}" for name in PROGRAMS)],
    )  # fmt: skip
    missing: set[str] = set()
    for model in MODELS:
        found: list[Found] = []
        for weights in FORMATS:
            programs, reasons = start(model, weights, threads)
            missing |= reasons
            progress(f"{model} in {weights}: {', '.join(program.name for program in programs)}")
            found.append({case: race_case(programs, case, rounds) for case in CASES})
            table.rows += rows(model, weights, found[-1], programs, machine_limits(threads)["read_gb_s"])
            found[-1][MEMORY] = {p.name: Measured(p.name, [p.info["peak_mb"]]) for p in programs}
            for program in programs:
                program.close()
        table.headlines += headlines(model, found)
    table.notes += [f"Not measured: {reason}." for reason in sorted(missing)]
    return table


def start(model: str, weights: str, threads: int) -> tuple[list[Program], set[str]]:
    def program(name: str) -> Callable[[], Program]:
        arguments = ("--model", model, "--weights", weights, "--threads", threads)
        module = f"benchmarks.peers.{PROGRAMS[name]}"
        return lambda: Program(name, module, *arguments, keep_pages=name == "PyTorch")

    return started(program(name) for name in PROGRAMS if name != "PyTorch" or weights in TORCH_FORMATS)


def race_case(programs: list[Program], case: str, rounds: int) -> dict[str, Measured]:
    """PyTorch multiplies bf16 matrices without bf16 instructions at a hundredth of its speed: it sits that one out.
    Several texts at once have llama.cpp's batched benchmark as their peer, if that is there."""
    able = [p for p in programs if not (case == PREFILL and p.info.get("slow_bf16"))]
    able = [p for p in able if case != EIGHT or p.name == "Chainrule" or p.info.get("batched")]
    return {measured.name: measured for measured in race(able, case, rounds, 1)}


def best_peer(times: dict[str, Measured]) -> Measured | None:
    peers = [measured for name, measured in times.items() if name != "Chainrule"]
    return faster(peers) if peers else None


def rows(
    model: str, weights: str, found: Found, programs: list[Program], read_gb_s: float
) -> Iterator[list[str]]:
    memory = {
        p.name: f"{p.info['peak_mb']:.0f} MB ({p.info['peak_mb'] - p.info['imported_mb']:.0f})"
        for p in programs
    }
    for case, times in found.items():
        mine, best = times["Chainrule"], best_peer(times)
        gigabytes = step_gigabytes(model, weights, int(case.split()[-1]))
        yield [
            NAMES[model], weights, case, *(middle_and_best(times[name]) if name in times else "–" for name in PROGRAMS),
            bold(best.median / mine.median) if best else "–",
            f"{best.minimum / mine.minimum:.2f}" if best else "–",
            f"{gigabytes / read_gb_s / (mine.median / 1e3):.0%}" if case != PREFILL else "",
            *(memory.get(name, "–") for name in PROGRAMS),
        ]  # fmt: skip


def headlines(model: str, found: list[Found]) -> Iterator[Row]:
    """A row for each kind of work, with all formats in it."""
    for case, work in CASES.items():
        if case == EIGHT and not any(map(best_peer, (times[case] for times in found))):
            continue  # has no peer here
        yield compared(f"{NAMES[model]}, {work}, {joined(FORMATS)}", [times[case] for times in found])
    memory = [times[MEMORY] for times in found]
    yield compared(
        f"{NAMES[model]}, peak memory in total, {joined(FORMATS)}", memory, lambda mb: f"{mb:.0f} MB"
    )


def compared(work: str, cases: list[dict[str, Measured]], show: Callable[[float], str] = milliseconds) -> Row:
    """One row for several cases, each beside its fastest peer; a peer is named where it is another than before."""
    ours, peers = [times["Chainrule"] for times in cases], [best_peer(times) for times in cases]
    cells, name = [], ""
    for peer in peers:
        if peer is None:
            cells.append(NOT_MEASURED)
            continue
        cells.append(f"{'' if peer.name == name else peer.name + ' '}{show(peer.median)}")
        name = peer.name
    ratios = [f"{b.median / a.median:.2f}" if b else "–" for a, b in zip(ours, peers, strict=True)]
    return Row(work, joined(show(a.median) for a in ours), joined(cells), joined(ratios))


def step_gigabytes(model: str, weights: str, context: int) -> float:
    """Weights and cached keys and values that a token reads."""
    size = MODELS[model]
    C, F, L = size["n_embd"], size.get("n_hidden", 4 * size["n_embd"]), size["n_layer"]
    kv = C // size["n_head"] * size.get("n_kv_head", size["n_head"])
    matrices = 2 if model == "gpt2" else 3
    parameters = size["vocab_size"] * C + L * (2 * C * C + 2 * C * kv + matrices * C * F)
    bits = {"fp32": 32, "bf16": 16, "q8_0": 8.5, "q4_0": 4.5}[weights]
    return (parameters * bits / 8 + L * 2 * kv * context * 4) / 1e9


# What the workers share


def worker_arguments(description: str | None) -> argparse.ArgumentParser:
    parser = command_line(description)
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--weights", choices=FORMATS, default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def serve_decoder(
    prefill: Callable[[np.ndarray], Any],
    step: Callable[[Any], Any],
    imported_mb: float,
    prefill_many: Callable[[np.ndarray], Any] | None = None,
    **info: object,
) -> None:
    """`prefill` reads a prompt from an empty cache; both return the most likely next token. `prefill_many` reads it for
    as many texts as there are, and `step` goes on with all of them."""
    ids = np.random.default_rng(0).integers(0, 40000, 512)

    def run(case: str, count: int) -> list[float]:
        if case == PREFILL:
            prefill(ids)  # warm up, as llama-bench does
            return timed(lambda: prefill(ids), count)
        begin = prefill_many if case == EIGHT and prefill_many is not None else prefill
        token = begin(ids[: int(case.split()[-1])])

        def tokens() -> None:
            nonlocal token
            for _ in range(TOKENS):
                token = step(token)

        return [ms / TOKENS for ms in timed(tokens, count)]

    step(prefill(ids[:8]))
    serve(run, imported_mb, **info)


def has_bf16_instructions() -> bool:
    try:
        return "bf16" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return True
