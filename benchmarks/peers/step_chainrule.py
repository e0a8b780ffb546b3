"""One training step of a GPT: forward, loss, backward, clipping, AdamW, on a fresh batch each time.

    python -m benchmarks.peers.step_chainrule --config a --threads 2              prints one JSON line
    python -m benchmarks.peers.step_chainrule --config a --threads 2 --serve      for an interleaved comparison

With --serve it prints {"ready": true, ...} after warm-up; then each line "N" on standard input makes it run N steps and
print {"ms": [...], "loss": ..., "rss_mb": ...}. Only ratios of medians taken in one interleaved run mean anything.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time

SIZES = {  # layers, heads, width, context, batch, vocabulary
    "a": (4, 4, 128, 64, 12, 65),
    "b": (6, 6, 384, 256, 16, 65),
    "c": (12, 12, 768, 256, 4, 50257),
}
WARMUP = {"a": 20, "b": 2, "c": 1}


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", choices=SIZES, default="a")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int)
    parser.add_argument("--serve", action="store_true")
    return parser


def main(parser: argparse.ArgumentParser, prepare) -> None:
    args = parser.parse_args()
    step, info = prepare(args)
    for _ in range(1 + (WARMUP[args.config] if args.warmup is None else args.warmup)):
        step()
    info |= {"config": args.config, "dtype": args.dtype, "threads": args.threads}
    if args.serve:
        print(json.dumps({"ready": True, **info}), flush=True)
        for line in sys.stdin:
            print(json.dumps(run(step, int(line))), flush=True)
    else:
        result = run(step, args.steps)
        times = sorted(result.pop("ms"))
        print(
            json.dumps({**info, "ms_median": round(times[len(times) // 2], 2), "ms_min": times[0], **result})
        )


def flop_per_step(config: str) -> dict[str, float]:
    L, _, C, T, B, V = SIZES[config]
    flop = 6 * B * T * (L * 12 * C * C + V * C) + 6 * L * T * C * B * T  # half of the attention: it is causal
    return {"tokens": B * T, "gflop_step": flop / 1e9}


def run(step, steps: int) -> dict[str, object]:
    times, loss = [], 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(steps):
        began = time.perf_counter()
        loss = step()
        times.append((time.perf_counter() - began) * 1e3)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    faults = (usage.ru_minflt - before) // steps
    return {"ms": times, "loss": loss, "rss_mb": usage.ru_maxrss / 1024, "page_faults_per_step": faults}


def prepare(args):
    """A function that makes one step, and what is known about it beforehand."""
    import numpy as np

    import chainrule as cr
    from chainrule.models.gradient import backward
    from chainrule.models.microbatch import Batch

    L, H, C, T, B, V = SIZES[args.config]
    cr.set_threads(args.threads)
    cr.seed(0)
    size = {"n_layer": L, "n_head": H, "n_embd": C, "block_size": T, "vocab_size": V}
    model = cr.models.GPT(cr.models.GPTConfig(**size, activation="gelu_tanh"))
    parameters = model.parameters()
    optimiser = cr.optim.AdamW(parameters, 3e-4, (0.9, 0.95), weight_decay=0.1)
    data = np.random.default_rng(0).integers(0, V, 200_000)
    order = np.random.default_rng(1)

    def step() -> float:
        starts = order.integers(0, len(data) - T - 1, B)
        windows = data[starts[:, None] + np.arange(T + 1)]  # (B, T+1)
        parameters.zero_grad()
        with cr.precision(args.dtype):
            loss, _ = backward(model, Batch(windows[:, :-1], windows[:, 1:]))  # as the trainer does
        cr.optim.clip_global_norm(parameters, 1.0)
        optimiser.step()
        return loss

    return step, {"lib": f"chainrule {cr.__version__}", **flop_per_step(args.config)}


if __name__ == "__main__":
    main(arguments(__doc__), prepare)
