"""A training step of a GPT beside PyTorch and JAX: forward, loss, backward, clipping, AdamW, a fresh batch each time.

    make bench ONLY=steps

Peers at their best: PyTorch eager and compiled, each with malloc as it is and told to keep its pages, as our trainer
tells it; attention and AdamW are its fused ones; JAX with the whole step jitted. Each peer first runs a heat of its
own; the three fastest take turns with us in the race, since one that met a slow minute of the machine may be the
fastest after all. (All at once would not fit the memory of many machines.) step_chainrule.py, step_torch.py and
step_jax.py are the programs; tests/peers/test_gpt.py shows that ours and PyTorch's give the same losses.

On AMD's CPUs PyTorch does without AVX-512 in its matmuls, since its MKL does. What it would reach with it is in a table
of its own: a preloaded library makes MKL take the CPU for one of Intel's, which nobody ships or supports.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from benchmarks.harness import (
    OURS,
    Measured,
    Program,
    Unavailable,
    command_line,
    faster,
    progress,
    race,
    serve,
    timed,
)
from benchmarks.report import (
    Row,
    Table,
    bold,
    compiler,
    cpu_field,
    cpu_flags,
    cpu_name,
    joined,
    machine_limits,
    markdown,
    middle_and_best,
    milliseconds,
)


class Sizes(dict[str, tuple[int, ...]]):
    """By name. A name of six numbers, such as 2,4,256,1024,1,65, means these."""

    def __missing__(self, name: str) -> tuple[int, ...]:
        return tuple(map(int, name.split(",", 5)))


SIZES = Sizes(  # layers, heads, width, context, batch, vocabulary
    a=(4, 4, 128, 64, 12, 65), b=(6, 6, 384, 256, 16, 65), c=(12, 12, 768, 256, 4, 50257)
)
NAMES = {
    "a": "GPT 4 × 128, batch 12 × 64",
    "b": "GPT 6 × 384, batch 16 × 256",
    "c": "GPT-2 124 M, batch 4 × 256",
}
ROUNDS = {"a": (20, 10), "b": (8, 2), "c": (8, 1)}  # rounds, steps in each
WARMUP = {"a": 20, "b": 4, "c": 4}  # the compiled step is recorded and compared in the first ones
PEERS = (
    "PyTorch eager",
    "PyTorch eager, pages kept",
    "PyTorch compiled",
    "PyTorch compiled, pages kept",
    "JAX",
)
IN_RACE = 3  # peers, the fastest of the heats

GOALS = {  # of each size what must be reached, and the aim
    "ratio of medians to the fastest peer": {"a": (1.45, 1.6), "b": (1.18, 1.28), "c": (1.15, 1.25)},
    "share of the floor, by minima": {"a": (0.65, 0.75), "b": (0.80, 0.87), "c": (0.82, 0.88)},
    "growth of memory, of PyTorch's": {"a": (0.5, 0.4), "b": (0.5, 0.4), "c": (0.65, 0.5)},
}


class Found(NamedTuple):
    """One size: times of the race, fastest times of the heats, peak memory in total and its growth, in MB."""

    mine: Measured
    rivals: list[Measured]
    heats: dict[str, float]
    total: dict[str, float]
    growth: dict[str, float]
    page_faults: int

    @property
    def ratio(self) -> float:
        return faster(self.rivals).median / self.mine.median

    def least(self, kind: str) -> float:
        """The least memory of PyTorch's variants."""
        memory: dict[str, float] = getattr(self, kind)
        return min(mb for name, mb in memory.items() if name.startswith("PyTorch"))


def measure(threads: int, quick: bool) -> Table:
    table = Table(
        "Training step",
        f"Median (minimum) on {cpu_name()}. Ratio: to the fastest peer, above 1 if Chainrule is faster. Pages kept: "
        "`MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_` = 1e9, `MALLOC_TOP_PAD_` = 64 MB, as our trainer sets "
        f"them. The {IN_RACE} fastest peers of the heats are in the race, others have only a minimum. "
        "Floor: the FLOPs of a step at the speed of fused multiply-adds in registers; share: floor ÷ minimum. "
        "Memory: peak in total, and its growth over the imported library, the least of PyTorch's variants beside it.",
        ["config", "dtype", "Chainrule", *PEERS, "ratio of medians", "of minima", "steps", "spread",
         "share of the floor", "memory", "PyTorch", "growth", "PyTorch", "page faults per step"],
    )  # fmt: skip
    goals = []
    found = {}
    unlocked = {}
    for config in SIZES:
        found[config] = one_size(config, "fp32", threads, quick, table)
        goals += goal_rows(config, found[config], floor_ms(config, threads))
        table.notes += split_too(config, threads)
        if locked_mkl():
            try:
                unlocked[config] = race_with_all_of_mkl(config, threads, quick)
            except Unavailable as reason:
                table.notes.append(f"Not measured: {config} beside MKL's AVX-512: {reason}.")
    if unlocked:
        table.notes.append(
            "PyTorch with the AVX-512 kernels of its MKL, which takes them on Intel's CPUs only; a preloaded library "
            "(mkl_on_any_cpu.c) answers its question here. Pages kept. Medians (minima), in turn."
        )
        table.notes.append(unlocked_table(unlocked))
    halves = (
        ("a", "b") if "avx512_bf16" in cpu_flags() else ("a",)
    )  # PyTorch without it: minutes for a step of b
    for config in halves:
        one_size(config, "bf16", threads, quick, table)
    table.notes.append(markdown(["", "found", "must", "aim", "reached"], goals))
    if unlocked:
        table.headlines.append(unlocked_row(unlocked))
    for kind, title in (("total", "in total"), ("growth", "growth over the imported library")):
        pairs = [(getattr(f, kind)["Chainrule"], f.least(kind)) for f in found.values()]
        table.headlines.append(memory_row(f"peak memory of these steps, {title}", pairs))
    return table


def one_size(config: str, dtype: str, threads: int, quick: bool, table: Table) -> Found:
    """Heats and race of one size; adds its row."""
    rounds, count = (2, 1) if quick else ROUNDS[config]
    arguments = ("--config", config, "--dtype", dtype, "--threads", threads)
    found = raced(
        f"training step {config} in {dtype}", arguments, peers(arguments, dtype), rounds, count, table
    )
    raced_by_name = {rival.name: middle_and_best(rival) for rival in found.rivals}
    cells = [raced_by_name.get(name) or minimum(found.heats.get(name)) for name in PEERS]
    share = floor_ms(config, threads) / found.mine.minimum
    table.rows.append(
        (
            f"{config}: {', '.join(map(str, SIZES[config]))}", dtype, middle_and_best(found.mine), *cells,
            bold(found.ratio), f"{faster_at_best(found):.2f}", f"{rounds} × {count}", f"{found.mine.spread:.0%}",
            f"{share:.2f}" if dtype == "fp32" else "–",
            f"{found.total['Chainrule']:.0f} MB", f"{found.least('total'):.0f} MB",
            f"{found.growth['Chainrule']:.0f} MB", f"{found.least('growth'):.0f} MB", str(found.page_faults),
        )
    )  # fmt: skip
    if dtype == "fp32":
        table.headlines.append(headline(f"training step, {NAMES[config]}", found.mine, found.rivals))
    return found


def raced(
    work: str,
    arguments: Iterable[object],
    starts: Iterable[tuple[str, Callable[[], Program]]],
    rounds: int,
    count: int,
    table: Table,
) -> Found:
    heats, total, growth, again = {}, {}, {}, {}
    for name, start in starts:
        progress(f"{work}: {name} alone")
        try:
            program = start()
        except Unavailable as reason:
            table.notes.append(f"Not measured: {name}: {reason}.")
            continue
        program.ask("step", max(2, 2 * count))
        heats[name], again[name] = program.measured("step").minimum, start
        total[name], growth[name] = memory_of(program)
        program.close()
    if not heats:
        raise Unavailable(table.notes[-1])
    ahead = sorted(heats, key=lambda name: heats[name])[:IN_RACE]
    progress(f"{work}: {rounds} rounds of {count} with {joined(ahead)}")
    ours = Program(OURS, "benchmarks.peers.step_chainrule", *arguments)
    programs = [ours, *(again[name]() for name in ahead)]
    mine, *rivals = race(programs, "step", rounds, count)
    total["Chainrule"], growth["Chainrule"] = memory_of(ours)
    for program in programs:
        program.close()
    return Found(mine, rivals, heats, total, growth, ours.info["page_faults"])


def locked_mkl() -> bool:
    """MKL has kernels for this CPU that it does not take, because another company has made it."""
    return "avx512f" in cpu_flags() and cpu_field("vendor_id") not in ("", "GenuineIntel")


@contextmanager
def all_of_mkl() -> Iterator[Path]:
    """A library that makes MKL take the kernels that it takes on Intel's CPUs."""
    source = Path(__file__).with_name("mkl_on_any_cpu.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "mkl_on_any_cpu.so")
        subprocess.run(
            [compiler(), "-shared", "-fPIC", "-x", "c", str(source), "-o", str(library)], check=True
        )
        yield library


def race_with_all_of_mkl(config: str, threads: int, quick: bool) -> list[Measured]:
    """Ours, then PyTorch eager and compiled with all kernels of MKL."""
    rounds, count = (2, 1) if quick else ROUNDS[config]
    arguments = ("--config", config, "--threads", threads)
    progress(f"training step {config}: PyTorch with MKL's AVX-512")
    with all_of_mkl() as library, ExitStack() as running:
        programs = []
        for start in (
            lambda: Program(OURS, "benchmarks.peers.step_chainrule", *arguments),
            *(
                torch_program("step_torch", mode, *arguments, variables={"LD_PRELOAD": str(library)})
                for mode in ("eager", "compiled")
            ),
        ):
            programs.append(start())
            running.callback(programs[-1].close)
        return race(programs, "step", rounds, count)


def unlocked_table(races: dict[str, list[Measured]]) -> str:
    rows = [
        (config, *map(middle_and_best, times), bold(faster(times[1:]).median / times[0].median))
        for config, times in races.items()
    ]
    return markdown(["config", *(each.name for each in next(iter(races.values()))), "ratio"], rows)


def unlocked_row(races: dict[str, list[Measured]]) -> Row:
    best = [(times[0], faster(times[1:])) for times in races.values()]
    ours, theirs = (joined(milliseconds(each.median) for each in side) for side in zip(*best, strict=True))
    ratios = joined(f"{peer.median / mine.median:.2f}" for mine, peer in best)
    return Row("these steps beside PyTorch made to use MKL's AVX-512", ours, f"PyTorch {theirs}", ratios)


def split_too(config: str, threads: int) -> list[str]:
    """Where we split the batch by ourselves: what PyTorch takes if it is told to."""
    import chainrule as cr
    from chainrule.models.gradient import microbatch_count

    *_, C, T, B, _ = SIZES[config]
    model = cr.models.GPT.abstract(cr.models.GPTConfig(n_embd=C))
    count = microbatch_count(model.microbatch_tokens, B, T)
    if count == 1:
        return []
    arguments = ("--config", config, "--threads", threads, "--accumulate", count)
    progress(f"training step {config}: PyTorch in {count} microbatches")
    program = torch_program("step_torch", "eager", *arguments)()
    program.ask("step", 4)
    (_, growth), fastest = memory_of(program), program.measured("step").minimum
    program.close()
    return [
        f"{config}: Chainrule makes {count} microbatches of the batch by itself. PyTorch eager, pages kept, with a "
        f"loop that makes as many takes {milliseconds(fastest)} (fastest of 4) and {growth:.0f} MB of growth."
    ]


def memory_of(program: Program) -> tuple[float, float]:
    return program.info["peak_mb"], program.info["peak_mb"] - program.info["imported_mb"]


def minimum(ms: float | None) -> str:
    return "–" if ms is None else f"({milliseconds(ms)})"


def faster_at_best(found: Found) -> float:
    return min(rival.minimum for rival in found.rivals) / found.mine.minimum


def floor_ms(config: str, threads: int) -> float:
    """The least time of a step: its FLOPs, causal scores counted once, at the speed that limits.cpp measures."""
    import chainrule as cr
    from chainrule.scaling import Batch, flops, total

    L, H, C, T, B, V = SIZES[config]
    sizes = cr.models.GPTConfig(n_layer=L, n_head=H, n_embd=C, block_size=T, vocab_size=V)
    work = total(flops(cr.models.GPT.abstract(sizes), Batch(rows=B, tokens=T)))
    return (work.forward + work.backward) / machine_limits(threads)["gflops"] / 1e6


def goal_rows(config: str, found: Found, floor: float) -> list[tuple[str, ...]]:
    """What was found beside what must be reached and the aim; of memory less is better."""
    growth = found.growth["Chainrule"] / found.least("growth")
    rows = []
    for (what, goals), value in zip(
        GOALS.items(), (found.ratio, floor / found.mine.minimum, growth), strict=True
    ):
        must, aim = goals[config]
        sign = -1 if aim < must else 1
        level = "aim" if sign * value >= sign * aim else "must" if sign * value >= sign * must else "no"
        rows.append((f"{config}: {what}", f"{value:.3f}", f"{must:.2f}", f"{aim:.2f}", level))
    return rows


def memory_row(work: str, pairs: list[tuple[float, float]]) -> Row:
    ours, theirs = (joined(f"{mb:.0f}" for mb in side) for side in zip(*pairs, strict=True))
    return Row(work, f"{ours} MB", f"PyTorch {theirs} MB", joined(f"{b / a:.2f}" for a, b in pairs))


def headline(work: str, mine: Measured, others: list[Measured]) -> Row:
    best = faster(others)
    rest = ", ".join(
        f"{p.name.removeprefix('PyTorch ')} {milliseconds(p.median)}" for p in others if p is not best
    )
    found = f"{best.name} {milliseconds(best.median)}"
    return Row(
        work,
        milliseconds(mine.median),
        f"{found} ({rest})" if rest else found,
        f"{best.median / mine.median:.2f}",
    )


def torch_program(
    module: str,
    mode: str,
    *arguments: object,
    keep_pages: bool = True,
    name: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[], Program]:
    """A program of PyTorch, to be started: step_torch, lora_torch or dpo_torch, eager or compiled."""
    return lambda: Program(
        name or f"PyTorch {mode}",
        f"benchmarks.peers.{module}",
        *arguments,
        "--mode",
        mode,
        keep_pages=keep_pages,
        variables=variables,
    )


def jax_program(*arguments: object) -> Program:
    if importlib.util.find_spec("jax") is None:
        raise Unavailable("the package jax is not installed")
    return Program("JAX", "benchmarks.peers.step_jax", *arguments, keep_pages=True)


def peers(arguments: tuple[object, ...], dtype: str) -> list[tuple[str, Callable[[], Program]]]:
    """Each by its name; in bf16 only those that gain by it."""
    variants = [(mode, keep) for mode in ("eager", "compiled") for keep in (False, True)]
    starts = [
        (name, torch_program("step_torch", mode, *arguments, keep_pages=keep, name=name))
        for name, (mode, keep) in zip(PEERS, variants, strict=False)
    ]
    if dtype == "bf16":
        return starts[1::2]
    return [*starts, ("JAX", lambda: jax_program(*arguments))]


# What the workers share


def worker_arguments(description: str | None) -> argparse.ArgumentParser:
    parser = command_line(description)
    parser.add_argument("--config", default="a", help=f"{', '.join(SIZES)}, or six numbers")
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
    for _ in range(1 + WARMUP.get(config, 1)):
        step()
    serve(lambda case, count: timed(step, count), imported_mb)
