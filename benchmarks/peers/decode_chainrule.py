"""Text generation: reading a prompt, then one token after the other with a key-value cache. Weights are random.

    python -m benchmarks.peers.decode_chainrule --model gpt2 --weights int8 --threads 2           prints one JSON line
    python -m benchmarks.peers.decode_torch --model gpt2 --dtype bf16 --threads 2       the same in PyTorch

`read_share` is the memory that a step must read, weights and cache, as a share of what the machine could read in that
time; the limit is measured at the start, by all threads summing a large array.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

GPT2 = {"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024, "vocab_size": 50257}
LLAMA135 = {
    "n_layer": 30, "n_head": 9, "n_kv_head": 3, "n_embd": 576, "n_hidden": 1536, "block_size": 2048,
    "vocab_size": 49152,
}  # fmt: skip
BITS = {"fp32": 32, "bf16": 16, "int8": 8.5, "int4": 4.5}


def arguments(**formats: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=["gpt2", "llama135"], default="gpt2")
    for name, choices in formats.items():
        parser.add_argument(f"--{name}", choices=choices, default="fp32")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def read_limit(threads: int) -> float:
    """Bytes per second that sums over a large array reach, the best of a few"""
    parts = np.array_split(np.ones(2**26, np.float64), threads)  # 512 MB

    def seconds() -> float:
        began = time.perf_counter()
        list(pool.map(np.sum, parts))
        return time.perf_counter() - began

    with ThreadPoolExecutor(threads) as pool:
        return 2**29 / min(seconds() for _ in range(5))


def measure(prefill: Any, step: Any, args: argparse.Namespace) -> dict[str, float]:
    """Times of a prompt and of the tokens after it; the fastest and the middle step"""
    ids = np.random.default_rng(0).integers(0, 40000, (args.batch, args.prompt))
    step(prefill(ids[:, :8]))  # warm up
    filled = math.inf
    for _ in range(2):  # the first one also touches fresh memory
        began = time.perf_counter()
        tokens = prefill(ids)
        filled = min(filled, time.perf_counter() - began)
    times = []
    for _ in range(args.tokens):
        began = time.perf_counter()
        tokens = step(tokens)
        times.append(time.perf_counter() - began)
    middle = sorted(times)[len(times) // 2]
    return {
        "prefill_ms": round(filled * 1e3, 1),
        "ms_per_token": round(middle * 1e3, 3),
        "ms_per_token_min": round(min(times) * 1e3, 3),
        "tokens_per_s": round(args.batch / middle, 1),
    }


def step_bytes(model: Any, weights: str, args: argparse.Namespace) -> float:
    """Weights and cached keys and values that a step reads"""
    config = model.config
    shared = config.n_embd // config.n_head * getattr(config, "n_kv_head", config.n_head)
    length = args.prompt + args.tokens / 2
    positions = config.block_size * config.n_embd if args.model == "gpt2" else 0
    return (config.n_params - positions) * BITS[
        weights
    ] / 8 + args.batch * config.n_layer * 2 * shared * length * 4


def main() -> None:
    import chainrule as cr
    from chainrule.generate import Decoder

    args = arguments(weights=list(BITS))
    limit = read_limit(args.threads)
    cr.set_threads(args.threads)
    cr.seed(0)
    models = cr.models
    model: Any = (
        models.GPT(models.GPTConfig(**GPT2))
        if args.model == "gpt2"
        else models.Llama(models.LlamaConfig(**LLAMA135))
    )
    decoder = Decoder(model, args.weights, args.batch)

    def prefill(ids: np.ndarray) -> np.ndarray:
        decoder.reset()
        return decoder.prefill(list(ids)).argmax(axis=1)

    result = measure(prefill, lambda tokens: decoder.step(tokens).argmax(axis=1), args)
    share = step_bytes(model, args.weights, args) / (result["ms_per_token"] * 1e-3) / limit
    print(json.dumps({"lib": f"chainrule {cr.__version__}", **vars(args), **result,
                      "read_share": round(share, 2), "read_limit_gb_s": round(limit / 1e9, 1)}))  # fmt: skip


if __name__ == "__main__":
    main()
