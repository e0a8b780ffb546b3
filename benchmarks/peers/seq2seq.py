"""A training step of an encoder-decoder beside torch.nn.Transformer: forward, loss, backward, clipping, AdamW.

    make bench ONLY=seq2seq

Both get the same batches of sentences of unequal length; tests/peers/test_seq2seq.py shows that both compute the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr
from benchmarks.harness import Program, command_line, progress, race, serve, timed
from benchmarks.report import Table, bold, middle_and_best

SIZES = {  # layers, heads, width, longest sentence, batch, vocabulary
    "a": (2, 4, 128, 24, 32, 64),
    "b": (3, 8, 256, 32, 64, 8000),
    "c": (6, 8, 512, 32, 32, 16000),
}
ROUNDS = {"a": (20, 5), "b": (8, 1), "c": (5, 1)}  # rounds, steps in each
DROPOUT, SMOOTHING = 0.1, 0.1


def measure(threads: int, quick: bool) -> Table:
    table = Table(
        "Training step of an encoder-decoder",
        "Median (minimum); `torch.nn.Transformer` runs with malloc told to keep its pages, see steps.md.",
        [
            "layers, heads, width, length, batch, vocabulary",
            "Chainrule",
            "PyTorch",
            "ratio of medians",
            "of minima",
        ],
    )
    for config, sizes in SIZES.items():
        progress(f"encoder-decoder {config}")
        arguments = ("--config", config, "--threads", threads)
        ours = Program("Chainrule", "benchmarks.peers.seq2seq_chainrule", *arguments)
        theirs = Program("PyTorch", "benchmarks.peers.seq2seq_torch", *arguments, keep_pages=True)
        mine, peer = race([ours, theirs], "step", *((2, 1) if quick else ROUNDS[config]))
        for program in (ours, theirs):
            program.close()
        ratios = bold(peer.median / mine.median), f"{peer.minimum / mine.minimum:.2f}"
        table.rows.append((", ".join(map(str, sizes)), middle_and_best(mine), middle_and_best(peer), *ratios))
    return table


# What both workers share


def worker_arguments(description: str | None) -> argparse.Namespace:
    parser = command_line(description)
    parser.add_argument("--config", choices=SIZES, default="a")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def pair_batches(config: str) -> Any:
    _, _, _, T, B, V = SIZES[config]
    rng = np.random.default_rng(0)
    sources, targets = ([rng.integers(3, V, size=n) for n in rng.integers(T // 3, T, 2000)] for _ in range(2))
    return cr.data.PairBatches(sources, targets, start=1, end=2, batch_size=B, block_size=T, pool=4)


def serve_steps(step: Callable[[int], object], imported_mb: float) -> None:
    """`step` gets its number; the first two warm up."""
    number = 0

    def next_step() -> None:
        nonlocal number
        step(number)
        number += 1

    timed(next_step, 2)
    serve(lambda case, count: timed(next_step, count), imported_mb)
