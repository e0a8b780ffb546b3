"""A step of LoRA on a frozen GPT beside the same in PyTorch, eager and compiled: forward, loss, backward, clipping and
AdamW of the pairs of queries and values alone.

    make bench ONLY=lora

lora_chainrule.py and lora_torch.py are the two programs; tests/peers/test_peft.py compares the layers.
"""

from __future__ import annotations

from benchmarks.harness import Program, Unavailable, faster, progress, race, started
from benchmarks.peers.steps import NAMES, ROUNDS, headline, torch_program
from benchmarks.report import Table, bold, middle_and_best

RANK = 8
CONFIGS = ("b", "c")  # of steps.py


def measure(threads: int, quick: bool) -> Table:
    table = Table(
        "LoRA step",
        f"Rank {RANK} on queries and values, everything else frozen. Median (minimum). Ratio: to the faster of eager "
        "and compiled, above 1 if Chainrule is faster. The full step of the same model is among the training steps.",
        ["config", "Chainrule", "PyTorch eager", "PyTorch compiled", "ratio of medians", "of minima", "memory",
         "PyTorch"],
    )  # fmt: skip
    for config in CONFIGS:
        rounds, count = ROUNDS[config] if not quick else (2, 1)
        progress(f"LoRA step {config}: starting programs")
        arguments = ("--config", config, "--threads", threads)
        ours = Program("Chainrule", "benchmarks.peers.lora_chainrule", *arguments)
        peers, reasons = started(
            torch_program("lora_torch", mode, *arguments) for mode in ("eager", "compiled")
        )
        if not peers:
            raise Unavailable("; ".join(sorted(reasons)))
        table.notes += [f"Not measured: {reason}." for reason in sorted(reasons)]
        mine, *others = race([ours, *peers], "step", rounds, count)
        cells = {peer.name: middle_and_best(peer) for peer in others}
        memory = [f"{program.info['peak_mb']:.0f} MB" for program in (ours, *peers)]
        for program in (ours, *peers):
            program.close()
        best = faster(others)
        table.rows.append(
            (
                NAMES[config], middle_and_best(mine),
                *(cells.get(f"PyTorch {mode}", "–") for mode in ("eager", "compiled")),
                bold(best.median / mine.median), f"{best.minimum / mine.minimum:.2f}", memory[0], min(memory[1:]),
            )
        )  # fmt: skip
        table.headlines.append(headline(f"LoRA step, {NAMES[config]}", mine, others))
    return table
