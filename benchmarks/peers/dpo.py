"""A DPO step beside the same in PyTorch, eager and compiled: log-probabilities of both answers under the policy, the
loss of the margins with the reference's log-probabilities at hand, backward, clipping, AdamW.

    make bench ONLY=dpo

dpo_chainrule.py and dpo_torch.py are the two programs; tests/peers/test_align.py shows that both give the same losses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Program, Unavailable, faster, progress, race, started
from benchmarks.peers.steps import SIZES, headline, torch_program
from benchmarks.report import Table, bold, middle_and_best

CONFIGS = ("a", "b")  # of steps.py; a batch of n windows is n / 2 pairs
PROMPT = 0.5  # of each row: only the rest counts
BETA = 0.1
ROUNDS = {"a": (20, 10), "b": (8, 2)}  # rounds, steps in each


class Rows(NamedTuple):
    """Pairs of rows (B, 2, T + 1), how many tokens of each are the prompt, and the reference's ln P (B, 2)"""

    ids: np.ndarray
    prompt: int
    reference: np.ndarray


def pairs(config: str) -> Callable[[], Rows]:
    """A function that gives the next batch of random pairs, the same ones in every program."""
    _, _, _, T, B, V = SIZES[config]
    draw = np.random.default_rng(0)
    prompt = int(PROMPT * T)

    def batch() -> Rows:
        ids = draw.integers(0, V, (B // 2, 2, T + 1))
        ids[:, 1, :prompt] = ids[:, 0, :prompt]
        reference = -np.log(V) * (T + 1 - prompt) + draw.normal(size=(B // 2, 2))
        return Rows(ids, prompt, reference.astype(np.float32))

    return batch


def measure(threads: int, quick: bool) -> Table:
    table = Table(
        "DPO step",
        "Median (minimum). Half of each row is the prompt. PyTorch runs with malloc told to keep its pages, as our "
        "trainer tells it. Ratio: to the faster of eager and compiled, above 1 if Chainrule is faster.",
        [
            "config",
            "Chainrule",
            "PyTorch eager",
            "PyTorch compiled",
            "ratio of medians",
            "of minima",
            "steps",
        ],
    )
    for config in CONFIGS:
        one_size(config, threads, *(ROUNDS[config] if not quick else (2, 1)), table)
    return table


def one_size(config: str, threads: int, rounds: int, count: int, table: Table) -> None:
    """Adds the row of one size."""
    progress(f"DPO step {config}: starting 3 programs")
    arguments = ("--config", config, "--threads", threads)
    ours = Program("Chainrule", "benchmarks.peers.dpo_chainrule", *arguments)
    peers, reasons = started(torch_program("dpo_torch", mode, *arguments) for mode in ("eager", "compiled"))
    if not peers:
        raise Unavailable("; ".join(sorted(reasons)))
    table.notes += [f"Not measured: {reason}." for reason in sorted(reasons)]
    progress(f"DPO step {config}: {rounds} rounds of {count}")
    mine, *others = race([ours, *peers], "step", rounds, count)
    for program in (ours, *peers):
        program.close()
    best, cells = faster(others), {peer.name: middle_and_best(peer) for peer in others}
    table.rows.append(
        (
            f"{config}: {', '.join(map(str, SIZES[config]))}", middle_and_best(mine),
            *(cells.get(f"PyTorch {mode}", "–") for mode in ("eager", "compiled")),
            bold(best.median / mine.median), f"{best.minimum / mine.minimum:.2f}", f"{rounds} × {count}",
        )
    )  # fmt: skip
    L, _, C, T, B, _ = SIZES[config]
    table.headlines.append(headline(f"DPO step, GPT {L} × {C}, {B // 2} pairs of {T}", mine, others))
