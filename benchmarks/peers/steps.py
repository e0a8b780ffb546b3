"""A training step of a GPT beside PyTorch, eager and compiled: forward, loss, backward, clipping, AdamW, on a fresh
batch each time. PyTorch runs with malloc told to keep its pages, as our trainer tells it.

    make bench ONLY=steps

step_chainrule.py and step_torch.py are the two programs; tests/peers/test_gpt.py shows that both give the same losses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from benchmarks.harness import (
    Measured,
    Program,
    Unavailable,
    command_line,
    faster,
    progress,
    race,
    serve,
    started,
    timed,
)
from benchmarks.report import Row, Table, bold, joined, middle_and_best, milliseconds

SIZES = {  # layers, heads, width, context, batch, vocabulary
    "a": (4, 4, 128, 64, 12, 65),
    "b": (6, 6, 384, 256, 16, 65),
    "c": (12, 12, 768, 256, 4, 50257),
}
NAMES = {
    "a": "GPT 4 × 128, batch 12 × 64",
    "b": "GPT 6 × 384, batch 16 × 256",
    "c": "GPT-2 124 M, batch 4 × 256",
}
ROUNDS = {"a": (20, 10), "b": (8, 2), "c": (5, 1)}  # rounds, steps in each
WARMUP = {"a": 20, "b": 2, "c": 1}


def measure(threads: int, quick: bool) -> Table:
    table = Table(
        "Training step",
        "Median (minimum). PyTorch runs with `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_` = 1e9 and "
        "`MALLOC_TOP_PAD_` = 64 MB: it keeps its pages, as our trainer does. Ratio: to the faster of eager and "
        "compiled, above 1 if Chainrule is faster. Memory: peak in total, and its growth over the imported library.",
        ["config", "dtype", "Chainrule", "PyTorch eager", "PyTorch compiled", "ratio of medians", "of minima",
         "steps", "spread", "memory", "PyTorch", "growth", "PyTorch", "page faults per step"],
    )  # fmt: skip
    memory: dict[str, list[list[float]]] = {"total": [], "growth": []}
    for config in SIZES:
        rounds, count = ROUNDS[config] if not quick else (2, 1)
        found = one_size(config, "fp32", threads, rounds, count, table)
        for kind, sides in found.items():
            memory[kind].append(sides)
    one_size("a", "bf16", threads, 2, 2, table, modes=("eager",))
    for kind, title in (("total", "in total"), ("growth", "growth over the imported library")):
        ours, theirs = zip(*memory[kind], strict=True)
        table.headlines.append(
            Row(
                f"peak memory of these steps, {title}",
                joined(f"{mb:.0f}" for mb in ours) + " MB",
                "PyTorch " + joined(f"{mb:.0f}" for mb in theirs) + " MB",
                joined(f"{b / a:.2f}" for a, b in zip(ours, theirs, strict=True)),
            )
        )
    return table


def one_size(
    config: str,
    dtype: str,
    threads: int,
    rounds: int,
    count: int,
    table: Table,
    modes: tuple[str, ...] = ("eager", "compiled"),
) -> dict[str, list[float]]:
    """Adds the rows of one size; returns total and growth of memory, ours and the least of PyTorch's."""
    progress(f"training step {config} in {dtype}: starting {1 + len(modes)} programs")
    arguments = ("--config", config, "--dtype", dtype, "--threads", threads)
    ours = Program("Chainrule", "benchmarks.peers.step_chainrule", *arguments)
    peers, reasons = started(torch_program("step_torch", mode, *arguments) for mode in modes)
    if not peers:
        raise Unavailable("; ".join(sorted(reasons)))
    table.notes += [f"Not measured: {reason}." for reason in sorted(reasons)]
    programs = [ours, *peers]
    progress(f"training step {config} in {dtype}: {rounds} rounds of {count}")
    mine, *others = race(programs, "step", rounds, count)
    cells = {peer.name: middle_and_best(peer) for peer in others}
    total = [p.info["peak_mb"] for p in programs]
    growth = [p.info["peak_mb"] - p.info["imported_mb"] for p in programs]
    for program in programs:
        program.close()
    best = faster(others)
    table.rows.append(
        (
            f"{config}: {', '.join(map(str, SIZES[config]))}", dtype, middle_and_best(mine),
            *(cells.get(f"PyTorch {mode}", "–") for mode in ("eager", "compiled")),
            bold(best.median / mine.median), f"{best.minimum / mine.minimum:.2f}", f"{rounds} × {count}",
            f"{mine.spread:.0%}", f"{total[0]:.0f} MB", joined(f"{mb:.0f}" for mb in total[1:]) + " MB",
            f"{growth[0]:.0f} MB", joined(f"{mb:.0f}" for mb in growth[1:]) + " MB", str(ours.info["page_faults"]),
        )
    )  # fmt: skip
    if dtype == "fp32":
        table.headlines.append(headline(f"training step, {NAMES[config]}", mine, others))
    return {"total": [total[0], min(total[1:])], "growth": [growth[0], min(growth[1:])]}


def headline(work: str, mine: Measured, others: list[Measured]) -> Row:
    best = faster(others)
    peer = f"{best.name} {milliseconds(best.median)}"
    rest = ", ".join(f"{p.name.split()[-1]} {milliseconds(p.median)}" for p in others if p is not best)
    return Row(
        work,
        milliseconds(mine.median),
        f"{peer} ({rest})" if rest else peer,
        f"{best.median / mine.median:.2f}",
    )


def torch_program(module: str, mode: str, *arguments: object) -> Callable[[], Program]:
    """A program of PyTorch, to be started: step_torch, lora_torch or dpo_torch, eager or compiled."""
    return lambda: Program(
        f"PyTorch {mode}", f"benchmarks.peers.{module}", *arguments, "--mode", mode, keep_pages=True
    )


# What both workers share


def worker_arguments(description: str | None) -> argparse.ArgumentParser:
    parser = command_line(description)
    parser.add_argument("--config", choices=SIZES, default="a")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def windows(config: str) -> Callable[[], np.ndarray]:
    """A function that gives the next batch (B, T + 1) of random tokens, the same ones in every program."""
    _, _, _, T, B, V = SIZES[config]
    data = np.random.default_rng(0).integers(0, V, 200_000)
    order = np.random.default_rng(1)
    return lambda: data[order.integers(0, len(data) - T - 1, B)[:, None] + np.arange(T + 1)]


def serve_steps(step: Callable[[], object], config: str, imported_mb: float) -> None:
    for _ in range(1 + WARMUP[config]):
        step()
    serve(lambda case, count: timed(step, count), imported_mb)
